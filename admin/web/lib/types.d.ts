// The types of the server's answers and of values that the scripts pass to each other.

/** A child of an element for `h`: nodes, texts, lists of them; null and false are none. */
type Child = any;

/** The attributes of an element; those that begin with "on" are listeners. */
interface Attributes {
	[name: `on${string}`]: (event: any) => void;
	[name: string]: any;
}

/** The result of a page function. */
interface Page {
	title: string;
	content: Child;
	/** Shows another address of the same page; returns false if it cannot. */
	update?: (route: Route) => boolean;
}

/** The address of a page. */
interface Route {
	name: string;
	segments: string[];
	query: Record<string, string>;
}

/** The argument of a page function. */
interface PageContext extends Route {
	/** What the first page needs, requested by index.html before the scripts are there. */
	first?: { aliases: Alias[] };
	/** Aborted when another page is shown. */
	signal: AbortSignal;
	/** Shows the page again. */
	reload: () => void;
}

interface Session {
	user: string;
	editor: boolean;
	/** The pages show items and nothing else. */
	items_only?: boolean;
	/** The rights to items. */
	may: string[];
	why_not: string;
	lasting: boolean;
	lasting_note: string;
	/** The accounts and users with the password of the example, and what to do; empty for none. */
	public_password?: string;
	log_out?: boolean;
}

type Kind = 'img' | 'file';

interface Alias {
	kind: Kind;
	name: string;
	storage: string;
	address: string;
	prefix?: string;
	max_size: number;
	extensions?: string[];
	webp?: boolean;
	overwrite?: boolean;
	/** Weak entity tags of its items are conditions. */
	dated?: boolean;
	private?: boolean;
	sanitize?: boolean;
	/** For how many seconds deleted items can be had back; missing without a trash. */
	trash?: number;
	/** Nothing can be purged. */
	trash_locked?: boolean;
	implicit?: boolean;
	settings?: Record<string, any>;
}

/** An item as clients get it, and in the dialog with its facts. */
interface Item {
	full_path: string;
	filename: string;
	size: number;
	modified?: string;
	etag?: string;
	content_type: string;
	/** The address of the variant. */
	webp?: string;
	/** Addresses by name. */
	renditions?: Record<string, string>;
	/** Of the image ('' as rendition) and its renditions, in ascending order. */
	sizes?: Size[];
	/** Of the attribute. */
	srcset?: string;
	/** Makes the addresses of a private item valid for an hour, if they can be signed. */
	query?: string;
	/** Of an entry of the trash, whose filename others may have too. */
	id?: string;
}

/** An entry of the trash. It has no address. */
interface Kept extends Item {
	id: string;
	stored: string;
	removed: string;
	expires_at: string;
}

/** What names an entry of the trash. */
type KeptName = Pick<Kept, 'id' | 'filename'>;

/** An entry of the trash that is back. */
interface Restored extends KeptName {
	/** The new one. */
	filename: string;
}

/** A page of the trash. */
interface TrashPage {
	result: Kept[];
	next?: string;
}

/** What is done to an item to bring a library back to a time. */
type PastAction = 'restored' | 'replaced' | 'removed' | 'doubtful';

interface PastItems {
	items: number;
	bytes: number;
	/** The first of them. */
	filenames?: string[];
}

/** What was done to bring a library back to a time, or would be. */
interface Past extends Record<PastAction, PastItems> {
	/** When that began: this time undoes it. */
	began: string;
	failed: Failure[];
	cursor?: string;
}

/** The pages of a list, the look of its entries, and what is shown without any. */
interface ListSource {
	page: (cursor: string, limit: number) => Promise<{ result: Item[]; folders?: string[]; next?: string; total?: number }>;
	look: (on: LookEvents) => Look;
	/** removed is whether there were entries that the user has removed from the list. */
	nothing: (removed: boolean) => Child;
}

/** Called by the head of a list: sort, and all that selects all or none. */
interface LookEvents {
	sort: (order: string) => void;
	all: (on: boolean) => void;
}

/** What a browser knows of a preview. */
interface Measured {
	width: number;
	height: number;
	/** In seconds. */
	duration?: number;
}

/** A size in pixels. */
interface Size {
	rendition: string;
	address: string;
	width?: number;
	height?: number;
}

interface Health {
	state?: string;
	since?: string;
	checked?: string;
	took_ms?: number;
	message?: string;
	detail?: string;
}

interface Guarantee {
	holds: boolean;
	text: string;
}

interface Stored {
	name: string;
	implicit?: boolean;
	driver: string;
	driver_title: string;
	driver_icon: string;
	where: string;
	settings?: Record<string, any>;
	sub_folder_format?: string;
	overwrite_strategy?: string;
	sanitize?: boolean;
	used_by?: User[];
	health?: Health;
	guarantees?: Guarantee[];
}

/** A check of an alias by another program. */
interface CheckState {
	kind: Kind;
	alias: string;
	name: string;
	health: Health;
}

/** The user of a storage or of an alias. */
interface User {
	kind?: Kind | 'resumable';
	alias?: string;
	account?: string;
	api_key?: string;
}

/** The description of an option. */
interface Option {
	name: string;
	type?: string;
	help?: string;
	default?: string;
	example?: string;
	words?: string[];
	/** Whether the words are names, which are shown as they are. */
	names?: boolean;
	required?: boolean;
	common?: boolean;
	secret?: boolean;
	options?: Option[];
	/** The word for one of named groups. */
	line?: string;
}

/** A field of a form. */
interface Field {
	path: string;
	name: string;
	element: HTMLElement;
	control: any;
	/** Returns the value, undefined if unset; throws an Error with a message if it is invalid. */
	read: () => any;
	/** The input of a secret: '' removes it, undefined keeps it. */
	secret?: () => string | undefined;
	/** Shows a message at the field; '' removes it. */
	mark: (message: string) => void;
	/** The type of the option. */
	type?: string;
	/** Advice about a wrong value. */
	advice?: string;
	/** The fields of a group, and whether it is on. */
	inner?: Field[];
	isOn?: () => boolean;
}

/** The type of an option by its path. */
type TypeOf = (path: string) => string | undefined;

interface Problem {
	message: string;
	field?: Field;
	error?: Error;
}

/** An entry of the configuration, as it is saved. */
interface Entry {
	value: Record<string, any>;
	secrets: string[];
}

/** An entry of the configuration, as it is entered. */
interface Input {
	value: Record<string, any>;
	secrets: Record<string, string>;
}

/** Of an option in a form. */
interface Context {
	path: string;
	value?: any;
	isSet?: boolean;
}

/** The description of the form of an entry. */
interface EntrySpec {
	section: string;
	what: string;
	/** '' for a new one. */
	name: string;
	current: Entry;
	etag: string | null;
	build: (current: Entry, isNew: boolean) => { element: HTMLElement; fields: () => Field[]; extra?: () => object };
	/** Nodes beside the buttons. */
	tools?: Child;
	/** The address of the list. */
	back: string;
	/** Asks before a change that has an unexpected effect. */
	agrees?: (value: Record<string, any>) => Promise<boolean>;
	saved?: (answer: any) => Promise<void>;
}

/** An entry that can be removed. */
interface Removal {
	section: string;
	name: string;
	what: string;
	warning: string;
	/** Its known uses. It cannot be removed while it has any. */
	users?: User[];
}

/** A button of a dialog. */
interface Action {
	text: string;
	value: string;
	look?: string;
	first?: boolean;
}

interface DialogOptions {
	actions?: Action[];
	wide?: boolean;
	/** Closes only by an action. */
	required?: boolean;
}

interface Account {
	api_key: string;
	aliases?: string[];
	may: string[];
	/** It has users of another login, and no password. */
	trusted?: boolean;
	/** Those of its aliases in the S3 front; null for an account without S3. */
	buckets: string[] | null;
}

/** A site with `media_s3`. */
interface S3Endpoint {
	/** With `*` for the host name of a site that has none. */
	address: string;
	region: string;
}

/** The configuration as a Caddyfile. */
interface CaddyfileAnswer {
	text: string;
	/** A command that prints a value, to which its path is added. */
	command: string;
	/** The variables that stand for secrets, with the paths of these in the configuration. */
	variables: { name: string; path: string }[];
	/** The paths of the values that a Caddyfile cannot express. */
	omitted: string[];
}

interface TokenStore {
	store?: string;
	ok?: boolean;
	message?: string;
	detail?: string;
}

interface Driver {
	title: string;
	icon: string;
	rank: number;
	/** Whether a host of the driver can be asked for its key. */
	host_keys?: boolean;
	help?: string;
	options: Option[];
}

/** The content of a list of items: a folder of an alias, or a search in it. */
interface Scope {
	alias: Alias;
	folder: string;
	search: string;
}

/** Where a user is in a list: its loaded entries, the scroll position in pixels, the focused item. */
interface ListPosition {
	count: number;
	top: number;
	item: string;
}

interface View {
	/** `grid` or `list`. */
	look: string;
	/** `name`, `modified` or `size`, or one of these after a minus. */
	order: string;
}

/** A list of items in one layout: the element of the entries, and the function that makes one. */
interface Look {
	element: HTMLElement;
	body: HTMLElement;
	entry: (scope: Scope, item: Item, selected: boolean) => HTMLElement;
	/** Shows in the head whether some or all items are selected. */
	selected?: (some: boolean, every: boolean) => void;
	/** The height of each row in pixels, with the gap after it. */
	rowHeight: () => number;
}

/** A button for the selected entries: the name of its icon, and its class. */
interface BarAction {
	name: string;
	text: Child;
	act: (items: Item[], button: HTMLElement) => any;
	look?: string;
}

type ItemSelection = ReturnType<typeof import('../pages/selection.js').newSelection>;

/** An item on which an action failed. */
interface Failure {
	filename: string;
	message: string;
}

/** The progress of an action on many items, in its dialog. */
interface Progress {
	/** Whether the user has stopped it. */
	stopped: () => boolean;
	done: (count: number) => void;
	fail: (filename: string, message: string) => void;
}

/** Makes the fields of options. */
type OptionFields = typeof import('./form.js').optionFields;

/** What the dialog of an item may ask of the list behind it, and reports to it. */
interface ItemOptions {
	/** The next (1) or previous (-1) item in the order of the list, '' at its end. Loads more if needed. */
	neighbour: (filename: string, step: 1 | -1) => Promise<string>;
	/** The dialog shows another item now: the address of the page follows. */
	shown: (filename: string) => void;
	/** With the id in the trash, if there is one. */
	deleted: (filename: string, trash?: string) => void;
	/** An earlier version is back under another name. */
	added: () => void;
	renamed: (old: string, filename: string) => void;
	replaced: (filename: string) => void;
}

type Listing = ReturnType<typeof import('../pages/listing.js').listing>;

/** A file to upload, with its folder in a tree, '' for a single file; without file it is unreadable. */
interface Upload {
	file?: File;
	name: string;
	folder: string;
}

/** What makes it safe to send a file again: the key of a form, the address of a resumable upload. */
interface Attempt {
	key: string;
	address: string;
}

/** A file in the queue. */
interface QueuedUpload {
	upload: Upload;
	/** Of the alias. */
	subFolder: string;
	size: number;
	sent: number;
	/** refused: by the page, without being sent. */
	state: 'waiting' | 'running' | 'stored' | 'failed' | 'cancelled' | 'refused';
	error: any;
	attempt: Attempt;
	/** Why the file is sent again, as a sentence. */
	interrupted?: string;
	/** As stored. */
	filename?: string;
	control?: AbortController;
}

/** An unfinished resumable upload. */
interface UnfinishedUpload {
	storage: string;
	name: string;
	account: string;
	user?: string;
	origin: string;
	client: string;
	kind: string;
	alias: string;
	sub_folder: string;
	filename: string;
	partial: boolean;
	/** It is complete, and waits until it is kept. */
	held: boolean;
	offset: number;
	length: number | null;
	created: string;
	last_byte: string;
	expires: string;
}

/** A page of the unfinished resumable uploads. */
interface UploadsAnswer {
	on: boolean;
	uploads: UnfinishedUpload[];
	problems: { storage: string; message: string; detail: string }[];
	next: string;
}

/** An answer of the server. */
interface Answer {
	status: number;
	statusText: string;
	/** The header Content-Type. */
	type: string | null;
	text: string;
	/** A header, '' if it is not sent. */
	header: (name: string) => string;
}

/** A number of objects, and their bytes. */
interface Count {
	objects: number;
	bytes: number;
}

/** What an alias holds, by its last count. */
interface AliasUsage {
	kind: Kind;
	name: string;
	items: Count;
	variants: Count;
	renditions: Count;
	trash: Count;
	/** A bound ended the count. */
	at_least: boolean;
	counted: string | null;
	state: 'idle' | 'waiting' | 'counting';
	/** The number of objects of the running count. */
	so_far: number;
	message: string;
	detail: string;
}

/** What the aliases of a storage hold, and its space, if it is known. */
interface StorageUsage {
	name: string;
	driver_title: string;
	driver_icon: string;
	free: number | null;
	total: number | null;
	unfinished: Count;
	aliases: AliasUsage[];
}

interface UsageAnswer {
	counting: boolean;
	storages: StorageUsage[];
}

/** A change of items, or of an entry of the configuration, that was made. */
interface ItemChange {
	time: string;
	action: string;
	/** Of an entry: "image alias", its name, and the names of the changed options. */
	section?: string;
	name?: string;
	options?: string;
	kind: Kind;
	alias: string;
	/** '' for a set. */
	filename: string;
	to_alias?: string;
	to?: string;
	size: number | null;
	/** Of a set that was deleted, in the folder or by names. */
	number?: number;
	folder?: string;
	origin: string;
	account: string;
	user?: string;
	result: string;
}

interface ChangesAnswer {
	since: string;
	changes: ItemChange[];
}
