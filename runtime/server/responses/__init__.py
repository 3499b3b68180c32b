"""OpenAI's Responses API: /v1/responses.

`protocol` is what comes in, `items` what goes out, `conversation` turns the one into a chat request,
`answer` the engine's news into the other, `store` keeps finished responses for `previous_response_id`,
`routes` puts them together.
"""
