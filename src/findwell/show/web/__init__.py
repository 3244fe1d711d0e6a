"""The local pages: results to explore, and passages to label; they own no logic of their own."""
