"""Load for engines and servers, and what is to be said of their answers.

workload, dataset, traces   which requests
records, summary            what became of them, and its figures
offline                     runs them in this process, on an engine
watch                       KV cache and GPU meanwhile
report, tables              files and terminal
"""
