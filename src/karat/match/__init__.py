"""Rule-drawn relations: which retrieved unit covers which gold item."""
