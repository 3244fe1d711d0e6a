"""One client for OpenAI-compatible servers: judges and embeddings ask through it.

`Endpoint` says where, `Session` keeps the connections and runs jobs, `RetryPolicy` and `Budget`
limit them, `Cache` keeps the answers.
"""
