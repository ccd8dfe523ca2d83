/**
 * The numbers of the page are English in every browser, as its words are. uPlot takes the browser's language when it is
 * loaded. It fails where that is no name of a language: under LANG=C.UTF-8, Chromium's is en-US@posix. So this file is
 * imported before uPlot.
 */
Object.defineProperty(navigator, "language", { value: document.documentElement.lang });
