// Opens a page with image_srcset in windows of several widths.
import { assert, facts, open, run } from './lib.mjs';

await run(async () => {
	for (const { width, picked } of facts.more) {
		const page = await open({ width });
		const image = page.getByAltText('A photograph');
		await image.evaluate((img) => img.decode());
		assert.equal(await image.evaluate((img) => new URL(img.currentSrc).pathname), picked);
	}
});
