// Opens a page of private images twice, each time with addresses that are signed anew.
import { assert, facts, open, run } from './lib.mjs';

await run(async () => {
	const page = await open();
	const shown = () => page.evaluate(async () => {
		await Promise.all([...document.images].map((image) => image.decode()));
		return [...document.images].map((image) => image.src);
	});
	const first = await shown();
	assert.equal(first.length, facts.more.images);
	await page.goto(`${facts.panel}?again`);
	assert.deepEqual(await shown(), first);
});
