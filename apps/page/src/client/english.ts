/**
 * The numbers of the page are English in every browser, as its words are. uPlot takes the browser's language when it is loaded, and fails where
 * that is no name of a language: Chromium's is en-US@posix under LANG=C.UTF-8. So this is imported before uPlot.
 */
Object.defineProperty(navigator, "language", { value: document.documentElement.lang });
