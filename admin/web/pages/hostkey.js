// @ts-check
// The key by which a host is recognised: asked for, shown, confirmed.
import { send } from '../lib/api.js';
import { h, rich } from '../lib/dom.js';
import { collect } from '../lib/form.js';
import { ask, busyWhile, copyField } from '../lib/ui.js';

/**
 * The button that asks the host of a driver for its key, and enters it into the field for keys.
 * @param {string} driver
 * @param {Field[]} fields of the driver
 * @param {Field} target the field for keys
 */
export const askHostKey = (driver, fields, target) => {
	const title = 'Ask the host for its key';
	const button = h('button', { type: 'button', class: 'small', onclick: () => asked() }, title);
	target.advice = `“${title}” fills it in.`;
	const asked = () =>
		busyWhile(button, 'The host did not show its key', async () => {
			const entered = collect(fields).value.driver;
			const { body } = await send('POST', ['hostkey'], {
				body: { driver: { ...entered, name: driver } },
			});
			if (!await confirmed(body)) return;
			const { control } = target;
			control.value = [control.value.trim(), body.host_key].filter(Boolean).join('\n');
			control.dispatchEvent(new Event('input', { bubbles: true }));
			control.focus();
		});
	return button;
};

/** @param {{host_key: string, fingerprint: string}} key */
async function confirmed({ host_key: key, fingerprint }) {
	return await ask('Is this the key of the host?', [
		h('p', null, 'Compare the fingerprint with that of the host before you trust it. ',
			'Another host in its position shows another key.'),
		copyField('Fingerprint', fingerprint),
		copyField('Host key', key),
		h('p', { class: 'muted' }, rich('On the host: `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`')),
	], [{ text: 'Cancel', value: '', first: true }, {
		text: 'Trust this key',
		value: 'yes',
		look: 'primary',
	}]) === 'yes';
}
