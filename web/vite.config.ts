import { defineConfig } from "vite";

// One shell, one script, one style sheet, hashed names: the daemon embeds `dist` as it is.
export default defineConfig({
  base: "/",
  build: {
    target: "es2022",
    assetsDir: "assets",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
