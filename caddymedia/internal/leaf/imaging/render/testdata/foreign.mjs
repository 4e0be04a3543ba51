// Shows images, and their variants if they have one, in Chromium. Prints whether each image is shown, and by how
// much the colours of the variant differ.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(path.join(process.env.MEDIA_TEST_BROWSER, 'package.json'));
const { chromium } = require('playwright-core');

const types = { png: 'image/png', gif: 'image/gif', svg: 'image/svg+xml', webp: 'image/webp' };
const images = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const browser = await chromium.launch({
	executablePath: process.env.MEDIA_TEST_CHROMIUM,
	args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--disable-background-networking'],
});
const page = await browser.newPage();
await page.route('**/*', (route) => {
	const [, number, kind] = new URL(route.request().url()).pathname.split('/');
	if (number === '') {
		return route.fulfill({ contentType: 'text/html', body: '<!doctype html>' });
	}
	const file = images[number]?.[kind];
	if (!file) {
		return route.abort();
	}
	const type = kind === 'variant' ? 'webp' : path.extname(file).slice(1).toLowerCase();
	return route.fulfill({ path: file, contentType: types[type] ?? 'image/jpeg' });
});
await page.goto('http://images.test/');

const results = [];
for (const [number, image] of images.entries()) {
	results.push(await page.evaluate(look, [number, Boolean(image.variant)]));
}
console.log(JSON.stringify(results));
await browser.close();

/** Runs in the page. */
async function look([number, both]) {
	const side = 48;
	async function pixels(kind) {
		const image = new Image();
		image.src = `/${number}/${kind}`;
		const slow = new Promise((resolve, reject) => setTimeout(reject, 20_000));
		await Promise.race([image.decode(), slow]);
		const context = Object.assign(document.createElement('canvas'), { width: side, height: side })
			.getContext('2d', { willReadFrequently: true });
		context.fillStyle = '#808080';
		context.fillRect(0, 0, side, side);
		context.imageSmoothingQuality = 'high';
		context.drawImage(image, 0, 0, side, side);
		return context.getImageData(0, 0, side, side).data;
	}
	try {
		const stored = await pixels('image');
		if (!both) {
			return { shown: true };
		}
		const variant = await pixels('variant').catch(() => null);
		if (!variant) {
			return { shown: true, difference: 255 };
		}
		const sums = [0, 0, 0];
		stored.forEach((value, i) => i % 4 < 3 && (sums[i % 4] += Math.abs(value - variant[i])));
		return { shown: true, difference: Math.max(...sums) / (side * side) };
	} catch {
		return { shown: false };
	}
}
