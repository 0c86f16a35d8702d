"""Groups and transactions: state machines whose memory is an internal topic (``runtime``)."""
