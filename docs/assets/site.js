// The theme leaves its search dialog without a name, which screen readers need.
document.querySelectorAll(".md-search[role=dialog]").forEach(dialog => dialog.setAttribute("aria-label", "Search"));
