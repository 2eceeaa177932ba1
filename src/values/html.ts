/** Text that is HTML already. */
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
 * A template of HTML. Each value is escaped, for elements and for attributes in quotes, unless it is {@link Html} itself.
 * Null, undefined and false are nothing, and the members of an array follow each other.
 */
export function html(strings: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(strings.reduce((text, part, index) => text + print(values[index - 1]) + part))
}

function print(value: Value): string {
  if (value instanceof Html) return value.text
  if (value === null || value === undefined || value === false) return ''
  return Array.isArray(value) ? value.map(print).join('') : escapeHtml(String(value))
}
