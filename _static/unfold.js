// The theme lets the keyboard scroll wide code only where it saw that it is wide: when the page
// was loaded or resized. What was folded then had no width, so it is told again at unfolding.
document.addEventListener("toggle", () => window.dispatchEvent(new Event("resize")), true);
