// Puts an image into an editor or a widget of the documentation, and one that is refused.
import { assert, facts, open, run, shot } from './lib.mjs';

const { name, good, bad, token } = facts.more;

/** Runs a function in the page with a File. */
const withFile = (page, { name, content }, act) => page.evaluate(`(${act})(new File(
	[Uint8Array.from(atob('${content}'), (c) => c.charCodeAt(0))], '${name}', { type: 'image/jpeg' }))`);
const choose = (selector) => (page, { name, content }) =>
	page.locator(selector).first().setInputFiles({ name, mimeType: 'image/jpeg', buffer: Buffer.from(content, 'base64') });

// How a file is added, what the page has of the stored image, and where the reason of a refusal is.
const { add, stored, reason } = {
	'CKEditor 5': {
		add: (page, file) => withFile(page, file, (file) => {
			globalThis.alert = (text) => document.body.append(text);
			document.querySelector('.ck-editor__editable').ckeditorInstance.execute('uploadImage', { file });
		}),
		stored: () => document.querySelector('.ck-editor__editable')?.ckeditorInstance?.getData(),
		reason: 'body',
	},
	TinyMCE: {
		async add(page, { content }) {
			await page.waitForFunction(() => globalThis.tinymce?.activeEditor?.initialized);
			await page.evaluate(async (content) => {
				globalThis.tinymce.activeEditor.setContent(`<p><img src="data:image/jpeg;base64,${content}"></p>`);
				await globalThis.tinymce.activeEditor.uploadImages();
			}, content);
		},
		stored: () => globalThis.tinymce.activeEditor.getContent(),
		reason: '.tox-notification',
	},
	'Editor.js': {
		async add(page, file) {
			await page.locator('.ce-paragraph').last().click();
			await withFile(page, file, (file) => {
				const clipboardData = new DataTransfer();
				clipboardData.items.add(file);
				document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
			});
		},
		stored: () => document.querySelector('.image-tool--filled img')?.outerHTML,
		reason: '.cdx-notifies',
	},
	Dropzone: { add: choose('input.dz-hidden-input'), reason: '.dz-error-message' },
}[name];

await run(async () => {
	const page = await open();
	await add(page, good);
	// An editor has the address of its image, a form the id of an upload that waits.
	let address, headers;
	if (stored) {
		const found = await page.waitForFunction(`/\\/static\\/img\\/content\\/\\d\\d-\\d\\d\\/[^"]+/.exec((${stored})() ?? '')?.[0]`);
		address = await found.jsonValue();
	} else {
		const input = page.locator('[name="held[]"]');
		await input.waitFor({ state: 'attached' });
		address = `/api/upload/image/held/${await input.getAttribute('value')}?content=1`;
		headers = { Authorization: `Bearer ${token}` };
	}
	const answer = await page.request.get(new URL(address, facts.panel).href, { headers });
	assert.equal((await answer.body()).toString('base64'), good.content);
	await shot(page, `${name}-stored`);

	const next = await open();
	await add(next, bad);
	await next.locator(reason).filter({ hasText: bad.message }).first().waitFor({ state: 'attached' });
	await shot(next, `${name}-refused`);
});
