import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

// Compressed once, here, instead of for every visitor.
function packed(): Plugin {
  return {
    name: "packed",
    apply: "build",
    writeBundle({ dir = "dist" }) {
      for (const name of readdirSync(`${dir}/assets`)) {
        const file = `${dir}/assets/${name}`;
        writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
      }
    },
  };
}

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
  plugins: [packed()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
