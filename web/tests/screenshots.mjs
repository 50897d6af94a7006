// Pictures of the pages of a running hive: node tests/screenshots.mjs LINK OUT_DIR
// LINK is what `hive-c0re link` prints; it works once.
import { chromium } from "playwright-core";

const [link, out] = process.argv.slice(2);
if (link === undefined || out === undefined) {
  console.error("usage: node tests/screenshots.mjs LINK OUT_DIR");
  process.exit(2);
}
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage({ viewport: { width: 1200, height: 800 }, colorScheme: "dark" });
page.on("pageerror", (error) => console.error("page:", error.message));
page.on("console", (message) => message.type() === "error" && console.error("console:", message.text()));
await page.goto(link);
await page.getByRole("heading", { name: /^Agents/ }).waitFor();
await page.locator(".link-state.live").waitFor();
await page.waitForTimeout(500);
await page.screenshot({ path: `${out}/dashboard.png` });
const agent = page.locator("table.fleet a").first();
await agent.click();
await page.locator(".row.end").first().waitFor();
await page.waitForTimeout(300);
await page.screenshot({ path: `${out}/agent.png` });
await page.setViewportSize({ width: 360, height: 740 });
await page.waitForTimeout(300);
await page.screenshot({ path: `${out}/agent-phone.png` });
await page.goto(`${new URL(link).origin}/#/`);
await page.getByRole("heading", { name: /^Agents/ }).waitFor();
await page.waitForTimeout(500);
await page.screenshot({ path: `${out}/dashboard-phone.png` });
await browser.close();
