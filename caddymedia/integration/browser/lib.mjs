// Shared by all scripts: a browser that checks every page it opens.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(path.join(process.env.MEDIA_TEST_BROWSER, 'package.json'));
const { chromium } = require('playwright-core');
const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** The facts of the site, from the test: panel, service, user, password, secrets, more. */
export const facts = JSON.parse(readFileSync(process.env.MEDIA_TEST_FACTS, 'utf8'));
export { assert };

const shots = process.env.MEDIA_TEST_SHOTS;
const name = path.basename(process.argv[1], '.mjs');
const browser = await chromium.launch({
	executablePath: process.env.MEDIA_TEST_CHROMIUM,
	args: [
		'--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--no-first-run',
		'--disable-background-networking', '--disable-component-update', '--disable-sync',
		...facts.flags ?? [],
	],
});

const trouble = [];
const pages = [];
const looking = new Set();

/** Opens the panel as a user, in a separate browser context; without a user it stays on the login page. */
export async function open({ width = 1280, height = 900, dark = false, user = facts.user, password = facts.password, route = '', script = true, storageState, touch = false } = {}) {
	const context = await browser.newContext({
		viewport: { width, height },
		colorScheme: dark ? 'dark' : 'light',
		reducedMotion: 'reduce',
		javaScriptEnabled: script,
		hasTouch: touch,
		isMobile: touch,
		storageState,
		httpCredentials: user ? { username: user, password } : undefined,
		permissions: ['clipboard-read', 'clipboard-write'],
	});
	context.setDefaultTimeout(180_000);
	await context.addInitScript({ content: axeSource });
	const page = await context.newPage();
	pages.push(page);
	watch(page);
	await page.goto(facts.panel + route);
	await page.getByRole('heading', { level: 1 }).waitFor();
	if (user && await page.getByRole('heading', { level: 1, name: 'Log in' }).isVisible()) await fillLogin(page, user, password);
	return page;
}

/** Shows the page of a route, such as '#/health', in place of another one: until then the one before is shown. */
export async function visit(page, route) {
	await page.evaluate(() => document.querySelector('main h1')?.setAttribute('data-before', ''));
	await page.goto(facts.panel + route);
	await page.locator('main h1:not([data-before])').waitFor();
}

/** Logs in on the panel's own page. */
export async function fillLogin(page, user, password) {
	await page.getByLabel('User').fill(user);
	await page.getByLabel('Password').fill(password);
	await page.getByRole('button', { name: 'Log in' }).click();
	await page.locator('#nav').waitFor();
	await page.getByRole('heading', { level: 1 }).waitFor();
}

/** Records events that must never happen on a page of the panel. */
function watch(page) {
	page.on('pageerror', (error) => trouble.push(`error in the page: ${error.stack ?? error}`));
	page.on('dialog', (dialog) => {
		trouble.push(`a dialog of the browser: ${dialog.message()}`);
		return dialog.dismiss();
	});
	page.on('console', (message) => {
		// Refused requests are reported to the console too, and headers that no page may read; the scripts check those.
		if (message.type() === 'error' && !/^(Failed to load resource|Access to fetch at|Refused to get unsafe header)/.test(message.text())) {
			trouble.push(`console: ${message.text()}`);
		}
	});
	page.on('request', (request) => {
		const { origin, protocol } = new URL(request.url()); // a blob has the origin of its page
		if (/^chrome(-extension)?:$/.test(protocol)) return; // the browser's own viewer of PDFs
		if (origin !== new URL(facts.panel).origin && origin !== facts.service) {
			trouble.push(`request to another host: ${request.url()}`);
		}
		hides(`the address ${request.url()}`, request.url());
	});
	page.on('response', (response) => {
		const look = response.text().then((text) => hides(response.url(), text), () => {});
		looking.add(look);
		look.finally(() => looking.delete(look));
	});
}

/** Secrets must not be in a text. */
function hides(where, text) {
	for (const secret of facts.secrets ?? []) {
		if (text.includes(secret)) {
			trouble.push(`${where} has the secret ${secret}`);
		}
	}
}

/** Asserts no violations of axe-core, and nothing beyond the right edge. */
export async function accessible(page, what) {
	const violations = await page.evaluate(async () => {
		const found = await globalThis.axe.run(document, { resultTypes: ['violations'] });
		return found.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).slice(0, 3).join(' | ')}`);
	});
	assert.deepEqual(violations, [], `axe-core on ${what}`);
	const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
	assert.ok(beyond <= 0, `${what} is ${beyond} pixels wider than the window`);
}

/** Saves a screenshot of the page, if requested. */
export async function shot(page, what, fullPage = true) {
	if (!shots) {
		return;
	}
	mkdirSync(shots, { recursive: true });
	await page.screenshot({ path: path.join(shots, `${name}-${what}.png`), fullPage });
}

/** The name or text of the focused element, '' for none. */
export const focused = (page) => page.evaluate(() => {
	const { ariaLabel, innerText } = document.activeElement;
	return document.activeElement === document.body ? '' : ariaLabel || innerText;
});

/** The dialog of an item, or of another thing with exactly this name. */
export const item = (page, name) => page.getByRole('dialog', { name: name.trim(), exact: true });

/** Waits until the dialog of an item is closed. */
export const closed = (page) => page.waitForFunction(() => !document.querySelector('dialog') && !location.hash.includes('item='));

/** Buttons, links and fields of a page, by their exact names. */
export const controls = (page) => ({
	button: (name) => page.getByRole('button', { name, exact: true }),
	link: (name) => page.getByRole('link', { name, exact: true }),
	field: (name) => page.getByLabel(name, { exact: true }),
});

/** Shows the options of uploads, if they are folded. */
async function showOptions(page) {
	await page.locator('.listing:not([aria-busy])').waitFor();
	const toggle = page.getByRole('button', { name: 'Upload options' });
	if (await toggle.getAttribute('aria-expanded') === 'false') await toggle.click();
}

/** Chooses files to upload and their folder, and finds the line of one in the list. */
export const uploading = (page) => ({
	choose: (...files) => page.getByLabel('Files to upload').setInputFiles(files),
	options: () => showOptions(page),
	into: async (folder) => {
		await showOptions(page);
		await page.getByLabel('Into the folder').fill(folder);
	},
	line: (name) => page.getByRole('list', { name: 'Uploads' }).getByRole('listitem').filter({ hasText: name }),
});

/** A text file of a size, for uploading. */
export const text = (name, size = 10) => ({ name, mimeType: 'text/plain', buffer: Buffer.alloc(size, 'x') });

/** A promise, and the function that fulfills it. */
export function closedGate() {
	let go;
	const open = new Promise((resolve) => { go = resolve; });
	return { open, go };
}

/** Waits until a result is announced, also to screen readers. */
export const announced = (page, text) => page.getByRole('status').filter({ hasText: text }).waitFor();

/** Turns the mouse wheel over the content until a condition holds. */
export async function wheelUntil(page, condition, distance = 600) {
	await page.mouse.move(700, 500);
	while (!await condition()) {
		await page.mouse.wheel(0, distance);
		await page.evaluate(() => new Promise(requestAnimationFrame));
	}
}

/** Exchanges an account's password for a token, like a site: {status, token}. */
export async function logIn(key, password) {
	const answer = await fetch(new URL('/api/auth/generateToken', facts.panel), {
		method: 'POST', body: new URLSearchParams({ api_key: key, password }),
	});
	return { status: answer.status, ...await answer.json() };
}

/** Drops files {name, type, content in base64} on an element, like from the desktop. */
export async function drop(page, element, files) {
	const data = await page.evaluateHandle((files) => {
		const data = new DataTransfer();
		for (const { name, type, content } of files) {
			data.items.add(new File([Uint8Array.from(atob(content), (c) => c.charCodeAt(0))], name, { type }));
		}
		return data;
	}, files);
	await element.dispatchEvent('dragover', { dataTransfer: data });
	await element.dispatchEvent('drop', { dataTransfer: data });
}

/** Runs a script, and reports all recorded problems. */
export async function run(script) {
	try {
		await script();
		await Promise.all(looking);
		assert.deepEqual(trouble, []);
	} catch (error) {
		console.error(error.stack ?? error, ...trouble.map((text) => `\n${text}`));
		for (const [i, page] of pages.entries()) {
			console.error(`page ${i}: ${page.url()}\n${await page.locator('body').innerText().catch(String)}`);
			await shot(page, `failed-${i}`).catch(() => {});
		}
		process.exitCode = 1;
	} finally {
		await browser.close();
	}
}
