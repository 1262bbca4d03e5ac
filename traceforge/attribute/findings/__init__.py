"""From delays to findings: what is significant, what it costs, how sure that is, and how it is put in words."""
