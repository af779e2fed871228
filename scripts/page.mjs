// Looks at the status page in headless Chromium: fourteen situations, light and dark, narrow and wide. Takes a screenshot of each, and fails
// on what axe-core, the content security policy or a script error complains of, on a page that is wider than its window, and on marks
// with too little contrast. Told by scripts/page.sh where everything is; serves nothing itself.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { PAGE_MODULES, PAGE_SCREENSHOTS, PAGE_CHROMIUM, PAGE_TEST } = process.env;
const require = createRequire(`${PAGE_MODULES}/`);
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const WIDTHS = [375, 1280];
const SCHEMES = ["light", "dark"];
const PAGES = 14;

// The pages are served by a test of http, because only tests can show situations that were never there.
const gallery = spawn(PAGE_TEST, ["http::tests::gallery::gallery", "--ignored", "--nocapture", "--exact"]);
const pages = await new Promise((resolve, reject) => {
  let said = "";
  gallery.stdout.on("data", (data) => {
    said += data;
    const found = [...said.matchAll(/^page (\S+) (\S+)$/gm)].map(([, name, url]) => ({ name, url }));
    if (found.length === PAGES) resolve(found);
  });
  gallery.stderr.on("data", (data) => process.stderr.write(data));
  gallery.on("exit", () => reject(new Error(`the gallery ended: ${said}`)));
});

const problems = [];
const BYTES_MAX = 60 * 1024; // Of a page of a usual cluster, with its style sheet and its script.
let largest = 0;
mkdirSync(PAGE_SCREENSHOTS, { recursive: true });
const browser = await puppeteer.launch({ executablePath: PAGE_CHROMIUM, args: ["--no-sandbox"] });
for (const { name, url } of pages) {
  for (const scheme of SCHEMES) {
    for (const width of WIDTHS) {
      const where = `${name}-${scheme}-${width}`;
      const page = await browser.newPage();
      const complain = (text) => problems.push(`${where}: ${text}`);
      page.on("pageerror", (error) => complain(`script: ${error.message}`));
      page.on("dialog", async (dialog) => { complain(`a script of others ran: ${dialog.message()}`); await dialog.dismiss(); });
      page.on("console", (line) => { if (line.type() === "error") complain(`console: ${line.text()}`); });
      page.on("request", (request) => {
        const to = request.url();
        if (!to.startsWith(new URL(url).origin) && !to.startsWith("data:")) complain(`asks ${to}`);
      });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.setViewport({ width, height: 900 });
      await page.goto(url, { waitUntil: "load" });
      await page.waitForFunction(() => document.querySelector("#link").textContent === "live", { timeout: 10_000 });
      // The first event has replaced every section by now; what is seen is what the stream made.
      await new Promise((resolve) => setTimeout(resolve, 300));
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (wider > 0) complain(`${wider} px wider than its window`);
      const bytes = await page.evaluate(() => performance.getEntriesByType("navigation")[0].decodedBodySize);
      largest = Math.max(largest, name === "ten-thousand" || name === "hostile" ? 0 : bytes);
      await page.screenshot({ path: `${PAGE_SCREENSHOTS}/${where}.png`, fullPage: true });
      // Chromium's debugger is not subject to the page's policy, so axe can be evaluated in it.
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      for (const { id, help, nodes } of violations) complain(`${id}: ${help}: ${nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
      await page.close();
    }
  }
}

// What only a person at a keyboard would notice.
const at = (name) => pages.find((page) => page.name === name).url;
const page = await browser.newPage();
await page.goto(at("ten-thousand"));
await page.waitForFunction(() => document.querySelector("#link").textContent === "live");
await page.click("#pause");
if (await page.$eval("#pause", (button) => button.getAttribute("aria-pressed")) !== "true") problems.push("pause: not pressed");
if (await page.$eval("#link", (link) => link.textContent) !== "paused") problems.push("pause: does not say so");
await page.click("#pause");
await page.$eval("#q", (input) => { input.value = ""; });
await page.type("#q", "web");
await page.waitForFunction(() => location.search === "?q=web&only=all", { timeout: 5_000 });
if (await page.$eval("#q", (input) => document.activeElement === input && input.value) !== "web") problems.push("search: the focus was lost");
// By keyboard alone: the first press leads past the header, and every tab and every scrolling part can be reached and is seen.
const keys = await browser.newPage();
await keys.goto(at("stuck"));
await keys.waitForFunction(() => document.querySelector("#link").textContent === "live");
const reached = [];
for (let press = 0; press < 30; press += 1) {
  await keys.keyboard.press("Tab");
  reached.push(await keys.evaluate(() => {
    const node = document.activeElement;
    const outline = getComputedStyle(node).outlineStyle;
    return node === document.body ? null : `${node.getAttribute("href") ?? node.id ?? ""}${node.getAttribute("role") ?? ""}|${outline}`;
  }));
}
if (!reached[0]?.startsWith("#main|")) problems.push(`keyboard: the first stop is ${reached[0]}`);
for (const wanted of ["/workloads", "/group", "/workloads/shop/web", "region"]) {
  const stop = reached.find((one) => one?.split("|")[0].endsWith(wanted));
  if (!stop) problems.push(`keyboard: ${wanted} is not reached`);
  else if (stop.endsWith("|none")) problems.push(`keyboard: the focus on ${wanted} is not seen`);
}
// Of 10,000 workloads each is a few presses away: the next page comes before the rows.
await keys.goto(at("ten-thousand"));
await keys.waitForFunction(() => document.querySelector("#link").textContent === "live");
let stops = 0;
for (let words = ""; words !== "Next" && stops < 25; stops += 1) {
  await keys.keyboard.press("Tab");
  words = await keys.evaluate(() => document.activeElement.textContent.trim());
}
if (stops === 25) problems.push("keyboard: the next page of 10,000 workloads is not reached in 25 presses");
await Promise.all([keys.waitForNavigation(), keys.keyboard.press("Enter")]);
if (!(await keys.evaluate(() => location.search)).endsWith("page=4")) problems.push("keyboard: Next does not lead to the next page");
await keys.close();
// Where axe finds nothing, it has to be because there is nothing.
await page.evaluate(axe);
const broken = await page.evaluate(() => {
  document.documentElement.removeAttribute("lang");
  document.querySelector("#pause").textContent = "";
  return window.axe.run(document);
});
if (broken.violations.length < 2) problems.push("axe does not see what is broken on purpose");
await page.close();
const bare = await browser.newPage();
await bare.setJavaScriptEnabled(false);
await bare.goto(at("all-clear"));
if (!(await bare.$("noscript meta[http-equiv=refresh], head > meta[http-equiv=refresh]"))) problems.push("without a script it does not reload");
await bare.close();

if (largest > BYTES_MAX) problems.push(`the largest page has ${largest} bytes`);
await browser.close();
gallery.removeAllListeners("exit");
gallery.stdin.end();
for (const problem of problems) console.error(problem);
console.log(`${pages.length} pages, ${SCHEMES.length} schemes, ${WIDTHS.length} widths: ${problems.length} problems, ${largest} bytes at most; screenshots are in ${PAGE_SCREENSHOTS}`);
process.exitCode = problems.length ? 1 : 0;
