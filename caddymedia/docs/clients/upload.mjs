// Uploads images:  node upload.mjs photo.jpg ...
import { reason, uploadImages } from './media.mjs';

try {
	for (const item of await uploadImages(process.argv.slice(2), { alias: 'content' })) {
		console.log(item.full_path, item.filename);
	}
} catch (error) {
	console.error(reason(error));
	process.exitCode = 1;
}
