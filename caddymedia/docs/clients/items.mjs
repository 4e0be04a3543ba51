// Manages images of the alias content. Without arguments it prints its usage.
import { items, reason, remove, replace, transfer, uploadImages } from './media.mjs';

const alias = 'content';
const usage = `usage: node items.mjs list [folder]
       node items.mjs delete filename ...
       node items.mjs move|copy filename new-filename
       node items.mjs replace filename photo.jpg
       node items.mjs import address ...`;

// Each command has the least number of its arguments.
const commands = {
	list: [0, (folder) => items('image', alias, folder)],
	delete: [1, async (...filenames) => {
		const kept = await remove('image', alias, filenames);
		if (kept.length > 0) throw new Error(kept.map((one) => `${one.filename}: ${one.message}`).join('\n'));
		return [];
	}],
	move: [2, async (filename, to) => [await transfer('image', alias, filename, { to })]],
	copy: [2, async (filename, to) => [await transfer('image', alias, filename, { copy_to: to })]],
	replace: [2, async (filename, path) => [await replace('image', alias, filename, path)]],
	import: [1, (...addresses) => uploadImages([], { alias }, addresses)],
};

try {
	const [name, ...args] = process.argv.slice(2);
	const [least, command] = commands[name] ?? [Infinity];
	if (args.length < least) throw new Error(usage);
	for await (const item of await command(...args)) {
		console.log(item.full_path, item.filename);
	}
} catch (error) {
	console.error(reason(error));
	process.exitCode = 1;
}
