"""Who may do what. Until ACLs are built, everybody may do everything; the handlers ask all the same."""
