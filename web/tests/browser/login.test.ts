// T9 an engine that needs a login is logged in from the page, and the message that waited runs.

import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Browser, launch, live, open } from "./browser.ts";
import { Hive } from "./hive.ts";

let hive: Hive;
let browser: Browser;
before(async () => {
  const engine = fileURLToPath(new URL("stand-in.sh", import.meta.url));
  [hive, browser] = await Promise.all([Hive.start({ config: `[engine]\ndefault = "${engine}"\n` }), launch()]);
  await hive.cli("spawn", "ada", "--runtime", "process");
});
after(async () => {
  await browser?.close();
  await hive?.stop();
});

test("T7 T9 the page says that a login is needed, runs it, and the waiting message goes on", async () => {
  const { page } = await open(browser, await hive.link());
  await live(page);
  await hive.call("send", { to: "ada", body: "are you there?" });
  const card = page.locator("li.card", { hasText: "needs a login" });
  await card.getByRole("link", { name: "Log ada in" }).click();
  const login = page.getByRole("region", { name: "Login" });
  await login.getByRole("button", { name: "Start login" }).click();
  await login.getByRole("link", { name: "Open login.example.test" }).waitFor();
  await login.getByLabel("Answer or code").fill("wrong");
  await page.keyboard.press("Enter");
  await login.getByText("That code is wrong.").waitFor();
  await login.getByRole("button", { name: "Start login" }).click();
  await login.getByText("Paste the code here").last().waitFor();
  await login.getByLabel("Answer or code").fill("let-me-in");
  await login.getByRole("button", { name: "Enter" }).click();
  await page.locator(".row.text", { hasText: "I am in." }).first().waitFor();
  await login.waitFor({ state: "detached" });
  await page.context().close();
});
