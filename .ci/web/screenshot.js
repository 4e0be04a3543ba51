// Takes .github/panel.png: draws pictures, uploads them to a running demo and shows them in its panel.
//
//   rm -rf media-data && go run ./caddymedia/caddy run --config Caddyfile.example
//   MEDIA_TEST_BROWSER=<folder with playwright-core> node .ci/web/screenshot.js
//
// It needs chromium and pngquant. MEDIA_SERVER is the address of a demo elsewhere.
/* global document, location, requestAnimationFrame */
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';

const server = process.env.MEDIA_SERVER ?? 'http://localhost:8080';
const password = 'only for trying out';
const file = path.join(import.meta.dirname, '..', '..', '.github', 'panel.png');
const { chromium } = createRequire(path.join(process.env.MEDIA_TEST_BROWSER, 'package.json'))(
	'playwright-core',
);

// Name, hue of the sky, hue of the land, height of the sun (below 0: none), kind of land.
const scenes = [
	['Amber evening', 28, 250, 0.55, 'hills'],
	['Birch wood', 190, 140, -1, 'trees'],
	['Blue ridge', 215, 225, 0.2, 'hills'],
	['City at night', 245, 230, 0.25, 'towers'],
	['Coast', 200, 195, 0.3, 'sea'],
	['Dunes', 40, 32, 0.25, 'dunes'],
	['Fjord', 205, 210, 0.35, 'sea'],
	['Harbour lights', 265, 240, 0.6, 'towers'],
	['Heather', 320, 300, 0.4, 'hills'],
	['Lake in the morning', 350, 220, 0.62, 'sea'],
	['Meadow', 195, 95, 0.3, 'dunes'],
	['Night hike', 235, 250, 0.2, 'trees'],
	['Orchard hill', 55, 110, 0.3, 'hills'],
	['Pine valley', 25, 165, 0.35, 'trees'],
	['Quiet bay', 180, 185, 0.25, 'sea'],
	['Red rocks', 205, 12, 0.2, 'dunes'],
	['Skyline', 20, 260, 0.45, 'towers'],
	['Winter light', 210, 215, 0.5, 'trees'],
];

/** Draws a landscape. Runs in the browser; returns a JPEG in base64. */
function draw([name, sky, land, sun, kind], seed) {
	const [width, height] = [900, 675];
	const canvas = Object.assign(document.createElement('canvas'), { width, height });
	const g = canvas.getContext('2d');
	let state = seed * 7919 + 17;
	const random = () => (state = state * 48271 % 2147483647) / 2147483647;
	const dark = /night|lights/i.test(name);
	const paint = (colors, y0, y1) => {
		const gradient = g.createLinearGradient(0, y0, 0, y1);
		colors.forEach((color, i) => gradient.addColorStop(i / (colors.length - 1), color));
		g.fillStyle = gradient;
	};
	const disc = (x, y, r) => {
		g.beginPath();
		g.arc(x, y, r, 0, 7);
		g.fill();
	};
	paint(
		dark ? [`hsl(${sky} 60% 10%)`, `hsl(${sky + 20} 45% 38%)`]
			: [`hsl(${sky} 62% 62%)`, `hsl(${sky + 15} 75% 84%)`],
		0,
		height * 0.75,
	);
	g.fillRect(0, 0, width, height);
	if (sun >= 0) {
		const [x, y] = [width * (0.25 + 0.5 * random()), height * sun];
		g.fillStyle = 'hsl(45 95% 92% / 0.12)';
		for (const r of [150, 115, 85]) disc(x, y, r);
		g.fillStyle = dark ? 'hsl(50 40% 92%)' : 'hsl(45 100% 90%)';
		disc(x, y, 62);
	}
	for (let layer = 0; layer < 4; layer++) {
		const base = height * (0.56 + 0.12 * layer), light = dark ? 26 - 6 * layer : 62 - 13 * layer;
		const rough = [random() * 6, random() * 6, 0.004 + 0.004 * random(), 0.011 + 0.01 * random()];
		const top = (x) =>
			base + (kind === 'sea' && layer > 0 ? 4 * Math.sin(x / 30 + layer)
				: (kind === 'dunes' ? 34 : 62) * Math.sin(x * rough[2] + rough[0])
					+ (kind === 'dunes' ? 6 : 20) * Math.sin(x * rough[3] + rough[1]));
		paint([`hsl(${land + 6 * layer} 42% ${light}%)`, `hsl(${land + 10 * layer} 48% ${light - 12}%)`],
			base - 80, height);
		g.beginPath();
		g.moveTo(0, height);
		for (let x = 0; x <= width; x += 4) g.lineTo(x, top(x));
		g.lineTo(width, height);
		g.fill();
		if (kind === 'towers') {
			for (let x = 0; x < width; x += 46 + 50 * random()) {
				const [w, y] = [34 + 40 * random(), base - 60 - 190 * random() / (1 + layer / 2)];
				g.fillStyle = `hsl(${land} 35% ${light - 6}%)`;
				g.fillRect(x, y, w, height);
				g.fillStyle = 'hsl(46 90% 70% / 0.8)';
				for (let n = 0; n < 12; n++)
					g.fillRect(x + 6 + Math.floor(random() * (w - 12) / 9) * 9,
						y + 10 + 14 * Math.floor(random() * 9), 5, 7);
			}
		}
		if (kind === 'trees') {
			for (let x = 0; x < width; x += 30 + 46 * random()) {
				const [w, h, y] = [26 + 8 * layer, 120 + 40 * layer + 60 * random(), top(x) + 30];
				g.fillStyle = `hsl(${land + 12 * random()} 38% ${light - 8 + 6 * random()}%)`;
				for (const part of [0, 0.28, 0.52]) {
					g.beginPath();
					g.moveTo(x - w * (1 - part), y - h * part * 0.9);
					g.lineTo(x, y - h * (0.5 + part));
					g.lineTo(x + w * (1 - part), y - h * part * 0.9);
					g.fill();
				}
			}
		}
	}
	return canvas.toDataURL('image/jpeg', 0.9).split(',')[1];
}

async function post(address, body, headers) {
	const answer = await (await fetch(server + address, { method: 'POST', body, headers })).json();
	if (!answer.success) throw new Error(JSON.stringify(answer));
	return answer;
}

const browser = await chromium.launch({
	executablePath: '/usr/bin/chromium',
	args: ['--no-sandbox', '--disable-gpu'],
});
try {
	const page = await browser.newPage({
		viewport: { width: 1280, height: 800 },
		colorScheme: 'light',
		reducedMotion: 'reduce',
	});
	const form = new FormData();
	form.append('sub_folder', 'travel/2026');
	for (const [i, scene] of scenes.entries()) {
		form.append('files[]', new Blob([
			Buffer.from(await page.evaluate(`(${draw})(${JSON.stringify(scene)}, ${i + 1})`), 'base64'),
		]), `${scene[0]}.jpg`);
	}
	const { token } = await post('/api/auth/generateToken',
		new URLSearchParams({ api_key: 'try-out', password }));
	await post('/api/upload/image', form, { Authorization: `Bearer ${token}` });

	await page.goto(`${server}/media-admin/`);
	await page.getByLabel('User').fill('admin');
	await page.getByLabel('Password').fill(password);
	await page.getByRole('button', { name: 'Log in' }).click();
	await page.locator('#nav').waitFor();
	await page.evaluate(() => {
		location.hash = '#/items/img/content/travel/2026';
	});
	await page.getByRole('link', { name: 'night-hike.jpg' }).waitFor();
	await page.getByRole('button', { name: 'Dismiss' }).click();
	await page.evaluate(() => Promise.all([...document.images].map((image) => image.decode())));
	await page.evaluate(() =>
		new Promise((drawn) => {
			requestAnimationFrame(() => setTimeout(drawn, 500));
		})
	);
	await page.screenshot({ path: file });
} finally {
	await browser.close();
}
execFileSync('pngquant', ['--force', '--strip', '--speed', '1', '--output', file, file]);
