// @ts-check
// Line icons on a grid of 24, used beside text.

const svg = 'http://www.w3.org/2000/svg';

/** @type {Record<string, string>} */
const paths = {
	storages: 'M5 6c0-3.5 14-3.5 14 0v12c0 3.5-14 3.5-14 0zM5 6c0 3.5 14 3.5 14 0M5 12c0 3.5 14 3.5 14 0',
	aliases: 'M4 4h7l9 9-7 7-9-9zM8 8h.01',
	accounts: 'M8 20a4 4 0 1 1 2.8-6.8L20 4M16 8l3 3M8 16h.01',
	items: 'M4 5h16v14H4zM4 16l5-5 4 4 3-2 4 3M15.5 9.5h.01',
	uploads: 'M12 14V4M8 8l4-4 4 4M4 14v6h16v-6',
	health: 'M3 12h4l3-7 4 14 3-7h4',
	folder: 'M3 6h6l2 2h10v11H3z',
	file: 'M6 3h8l4 4v14H6zM14 3v4h4',
	up: 'M20 12a8 8 0 1 1-16 0 8 8 0 0 1 16 0M8.5 12.2l2.5 2.5 4.5-5',
	down: 'M12 3l9.5 17h-19zM12 9.5v5M12 17.2h.01',
	unknown: 'M20 12a8 8 0 1 1-16 0 8 8 0 0 1 16 0M9.8 10a2.2 2.2 0 1 1 3 2c-.6.3-.8.7-.8 1.4M12 16h.01',
	check: 'M5 12.5l4.5 4.5L19 7',
	cross: 'M6 6l12 12M18 6L6 18',
	minus: 'M6 12h12',
	previous: 'M15 5l-7 7 7 7',
	next: 'M9 5l7 7-7 7',
	expand: 'M5 9l7 7 7-7',
	collapse: 'M5 15l7-7 7 7',
	plus: 'M12 5v14M5 12h14',
	copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
	trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5',
	move: 'M3 19V6h6l2 2h10v11zM8 13.5h8M13 10.5l3 3-3 3',
	download: 'M12 4v12M7 11l5 5 5-5M4 20h16',
	upload: 'M12 16V4M7 9l5-5 5 5M4 20h16',
	search: 'M17 10.5a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0M15.5 15.5L20 20',
	grid: 'M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z',
	list: 'M9 6h11M9 12h11M9 18h11M4.5 6h.01M4.5 12h.01M4.5 18h.01',
	refresh: 'M19 12a7 7 0 1 1-2-5l2 2M19 4v5h-5',
	restore: 'M5 12a7 7 0 1 0 2-5L5 9M5 4v5h5',
	info: 'M20 12a8 8 0 1 1-16 0 8 8 0 0 1 16 0M12 11v5M12 8h.01',
	lock: 'M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3',
	cloud: 'M7 18a4 4 0 0 1-.4-8A5.5 5.5 0 0 1 17.2 11 3.6 3.6 0 0 1 17 18z',
	server: 'M4 4h16v7H4zM4 13h16v7H4zM7.5 7.5h.01M7.5 16.5h.01',
	disk: 'M4 13l3-8h10l3 8v6H4zM4 13h16M16.5 16h.01',
};

/**
 * The icon of a name.
 * @param {string} name
 */
export function icon(name) {
	const element = document.createElementNS(svg, 'svg');
	element.setAttribute('viewBox', '0 0 24 24');
	element.setAttribute('class', 'icon icon-' + name);
	element.setAttribute('aria-hidden', 'true');
	const path = document.createElementNS(svg, 'path');
	path.setAttribute('d', paths[name] ?? paths.file);
	element.append(path);
	return element;
}

/**
 * The icon of a driver, as the driver names it.
 * @param {string} name
 */
export const driverIcon = (name) => icon(name in paths ? name : 'cloud');
