"""The service: classes, answers and new nodes over HTTP, with a page to give them on and a client."""
