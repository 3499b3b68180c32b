"""Load for engines and servers, and what is to be said of their answers.

workload, dataset, traces, arrivals   which requests, and when
records, summary                      what became of them, and its figures
offline                               runs them in this process, on an engine
online, client, answer, sse           sends them to a server
watch, server_watch                   KV cache and GPU meanwhile
report, tables                        files and terminal
"""
