// Before anything is painted: the theme that was chosen in this browser.
(() => {
  try {
    const theme = localStorage.getItem('sluice.theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch {
    // No storage: as the system has it.
  }
})();
