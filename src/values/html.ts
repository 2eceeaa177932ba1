/** A text that is already HTML. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Value = string | number | Html | null | undefined | false | readonly Value[]

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

const escapeHtml = (text: string) => text.replace(/[&<>"']/g, character => escapes[character]!)

/**
 * A template of HTML. It escapes each value for elements and quoted attributes, except {@link Html}. Null, undefined
 * and false print nothing, and arrays print their members.
 */
export function html(strings: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(strings.reduce((text, part, index) => text + print(values[index - 1]) + part))
}

function print(value: Value): string {
  if (value instanceof Html) return value.text
  if (value === null || value === undefined || value === false) return ''
  return Array.isArray(value) ? value.map(print).join('') : escapeHtml(String(value))
}
