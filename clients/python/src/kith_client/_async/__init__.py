"""The asynchronous client. The modules of the synchronous one are generated from these."""
