// Previews of all types; hostile ones do nothing.
import { accessible, announced, assert, drop, facts, open, run, shot, uploading } from './lib.mjs';

await run(async () => {
	const page = await open({ route: '#/items/file/content' });
	const dialog = (name) => page.getByRole('dialog', { name, exact: true });
	const fact = (item, name) => item.locator('dl > div').filter({ has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) }).locator('dd');
	const show = async (name) => {
		await page.goto(`${facts.panel}#/items/file/content?item=${encodeURIComponent(name)}`);
		const item = dialog(name);
		await item.getByRole('link', { name: 'Open', exact: true }).waitFor();
		return item;
	};
	await upload(page);

	// A film plays, and keeps its own keys.
	let item = await show('film.webm');
	const film = item.locator('video');
	await film.evaluate((video) => video.readyState >= 1 || new Promise((done) => { video.onloadedmetadata = done; }));
	assert.equal(await fact(item, 'Pixels').innerText(), '64 × 48');
	await film.evaluate((video) => {
		video.muted = true;
		return video.play();
	});
	await page.waitForFunction(() => document.querySelector('video').currentTime > 0);
	await film.focus();
	await page.keyboard.press('ArrowRight'); // seeks
	await dialog('film.webm').waitFor();
	await accessible(page, 'a film');
	await shot(page, 'film', false);

	// A sound.
	item = await show('a.wav');
	const sound = item.locator('audio');
	await sound.evaluate((audio) => audio.readyState >= 1 || new Promise((done) => { audio.onloadedmetadata = done; }));
	assert.equal(await fact(item, 'Length').innerText(), '0:02');
	assert.equal(await fact(item, 'Pixels').count(), 0);
	await accessible(page, 'a sound');
	await shot(page, 'sound', false);

	// Images.
	for (const [name, pixels] of [['a.avif', /^\d+ × \d+$/], ['a.svg', null], ['a.webp', /^20 × 10$/]]) {
		item = await show(name);
		await item.getByRole('img', { name }).evaluate((img) => img.decode());
		if (pixels) assert.match(await fact(item, 'Pixels').innerText(), pixels, name);
	}

	// A PDF is shown by the viewer of the browser.
	item = await show('a.pdf');
	await reddened(page, item.locator('iframe'));
	await accessible(page, 'a PDF');
	await shot(page, 'pdf', false);

	// Texts: the first 64 KiB, in any of the usual encodings.
	for (const [name, text] of [
		['latin.txt', 'Grüße'], ['wide.txt', 'ađ'], ['empty.txt', null], ['binary.txt', null],
	]) {
		item = await show(name);
		if (text) await page.waitForFunction((text) => document.querySelector('dialog pre')?.textContent === text, text);
		else await item.getByText(name === 'empty.txt' ? 'The file is empty.' : 'The file is not a text.').waitFor();
	}
	item = await show('long.txt');
	await item.getByText('The first 64 KiB of 128 KiB').waitFor();
	assert.equal(await item.locator('pre').evaluate((pre) => pre.textContent.length), 64 << 10);
	await accessible(page, 'a text');
	await shot(page, 'text', false);

	// What the browser cannot show is said in a sentence.
	for (const [name, text] of [
		['a.heic', 'Only Safari shows HEIC images.'], ['a.zip', 'No preview of this type.'],
		['broken.mp4', 'This browser cannot play this film.'], ['broken.jpg', 'This browser cannot show this image.'],
	]) {
		item = await show(name);
		await item.getByText(text, { exact: true }).waitFor();
		assert.equal(await item.getByRole('link', { name: 'Download', exact: true }).getAttribute('download'), name);
	}
	item = await show('soundonly.mp4');
	await item.getByText('This browser plays only the sound of this film.').waitFor();
	item = await show('broken.jpg');
	await accessible(page, 'no preview');
	await shot(page, 'none', false);
	const [download] = await Promise.all([page.waitForEvent('download'), item.getByRole('link', { name: 'Download', exact: true }).click()]);
	assert.equal(download.suggestedFilename(), 'broken.jpg');

	await hostile(page, show);

	// Two previews after each other: a PDF keeps its own keys, the dialog has the others.
	item = await show('a.pdf');
	await item.getByRole('button', { name: 'Next' }).focus();
	await page.keyboard.press('ArrowRight');
	await dialog('a.svg').waitFor();
	await announced(page, 'a.svg');
	await phone();
});

/** Uploads a film and an image that the browser makes itself. */
async function upload(page) {
	const made = await page.evaluate(async () => {
		const canvas = document.createElement('canvas');
		canvas.width = 64;
		canvas.height = 48;
		const paint = canvas.getContext('2d');
		const recorder = new MediaRecorder(canvas.captureStream(30), { mimeType: 'video/webm;codecs=vp8' });
		const pieces = [];
		recorder.ondataavailable = ({ data }) => pieces.push(data);
		recorder.start();
		for (let i = 0; i < 40; i++) {
			paint.fillStyle = `hsl(${i * 9} 80% 50%)`;
			paint.fillRect(0, 0, 64, 48);
			await new Promise(requestAnimationFrame);
		}
		await new Promise((done) => {
			recorder.onstop = done;
			recorder.stop();
		});
		const small = document.createElement('canvas');
		small.width = 20;
		small.height = 10;
		const webp = await new Promise((done) => small.toBlob(done, 'image/webp'));
		const base64 = async (blob) => btoa(String.fromCharCode(...new Uint8Array(await blob.arrayBuffer())));
		return { film: await base64(new Blob(pieces)), image: await base64(webp) };
	});
	await uploading(page).into('/');
	await drop(page, page.getByRole('region', { name: 'Upload' }), [
		{ name: 'film.webm', type: 'video/webm', content: made.film }, { name: 'a.webp', type: 'image/webp', content: made.image },
	]);
	await announced(page, '2 files stored.');
}

/** Waits until an element on the screen is mostly red. */
async function reddened(page, element) {
	for (let i = 0; i < 100; i++) {
		const image = (await element.screenshot()).toString('base64');
		const red = await page.evaluate(async (image) => {
			const bytes = Uint8Array.from(atob(image), (c) => c.charCodeAt(0));
			const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
			const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
			const paint = canvas.getContext('2d');
			paint.drawImage(bitmap, 0, 0);
			const { data } = paint.getImageData(0, 0, bitmap.width, bitmap.height);
			let count = 0;
			for (let i = 0; i < data.length; i += 4) count += data[i] > 180 && data[i + 1] < 60;
			return count / (data.length / 4);
		}, image);
		if (red > 0.1) return;
	}
	assert.fail('the page of the PDF is not shown');
}

/** Scripts in texts, images and PDFs do not run, neither in the dialog nor in a tab of their own. */
async function hostile(page, show) {
	let item = await show('evil.txt');
	await item.locator('pre').filter({ hasText: 'a < b </pre><script>' }).waitFor();
	item = await show('evil.html');
	await item.locator('pre').filter({ hasText: '<!doctype html>' }).waitFor();
	item = await show('a.svg');
	await item.getByRole('img', { name: 'a.svg' }).evaluate((img) => img.decode());
	item = await show('evil.pdf');
	await reddened(page, item.locator('iframe'));
	assert.equal(await page.locator('dialog script, dialog svg script').count(), 0);
	assert.equal(await page.evaluate(() => window.hacked), undefined);
	const tab = await page.context().newPage();
	const dialogs = [];
	tab.on('dialog', (dialog) => {
		dialogs.push(dialog.message());
		return dialog.dismiss();
	});
	for (const [name, text] of [['evil.txt', 'a < b </pre>'], ['evil.html', '<!doctype html>'], ['a.svg', null]]) {
		await tab.goto(`${facts.panel}api/preview/file/content/${name}`);
		if (text) assert.ok((await tab.locator('pre').innerText()).includes(text));
		else await tab.locator('rect').waitFor();
		await tab.waitForLoadState('networkidle');
	}
	assert.deepEqual(dialogs, []);
	await tab.close();
	assert.equal(page.context().pages().length, 1, 'no window was opened');
}

/** On a phone the preview is on top, and the buttons below it are on the first screen. */
async function phone() {
	const page = await open({ route: '#/items/file/content?item=long.txt', width: 390, height: 844, dark: true });
	const item = page.getByRole('dialog', { name: 'long.txt' });
	await item.getByText('The first 64 KiB').waitFor();
	for (const name of ['Previous', 'Next', 'Rename', 'Replace', 'Delete']) {
		const box = await item.getByRole('button', { name, exact: true }).boundingBox();
		assert.ok(box.y + box.height < 844 && box.height >= 24, `${name} is at ${box.y}`);
	}
	await accessible(page, 'a text on a phone');
	await shot(page, 'phone', false);
}
