import type { DossierLine } from '../../client/index.ts'
import { Html, html } from '../../src/consent-pages/html.ts'
import { pageStyle } from './page-style.ts'
import { type Part, sections } from './sections.ts'
import { dateOf, timeOf } from './values.ts'

type About = Extract<DossierLine, { type: 'about' }>
type End = Extract<DossierLine, { type: 'end' }>

/**
 * Prints a dossier as one HTML page, as its lines arrive. It has neither scripts nor anything that is loaded from elsewhere, and every
 * value is escaped. The sections have the order of the lines.
 */
export async function* dossierPage(lines: AsyncIterable<DossierLine>): AsyncGenerator<string> {
  let next = 0
  let open: Part | undefined
  for await (const line of lines) {
    if (line.type === 'about') {
      yield headOf(line).text
      continue
    }
    const index = line.type === 'end' ? sections.length : sections.findIndex(({ types }) => types.includes(line.type))
    // A later release may send lines of types that this one does not know.
    if (index === -1) continue
    if (index >= next && open) {
      yield open.end
      open = undefined
    }
    for (; next < index; next += 1) yield emptySection(next)
    if (line.type === 'end') {
      yield footOf(line).text
      continue
    }
    if (!open) {
      const { id, title, about, part } = sections[index]!
      yield html`<section id="${id}"><h2>${title}</h2><p class="about">${about}</p>`.text
      const { begin, end } = part
      open = { begin, end: `${end}</section>\n` }
      yield begin
      next = index + 1
    }
    yield sections[index]!.print(line).text
  }
}

function emptySection(index: number): string {
  const { id, title, none } = sections[index]!
  return `${html`<section id="${id}"><h2>${title}</h2><p class="none">${none}</p></section>`.text}\n`
}

const states: Record<About['person']['state'], string> = {
  active: 'The person is stored.',
  placeholder: 'Other data refer to the person, who was not stored as such.',
  deleted: 'The person was deleted. What remains is shown here.',
  erased: 'The data of the person were erased. What remains is shown here.',
}

function headOf({ person, organization, at, head, log_id, made_by }: About): Html {
  const holder = organization.display_name ?? organization.key
  const { contact_email, privacy_url } = organization
  // The style is kith's own text, so it is not escaped.
  const [before, after] = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>Personal data held by ${holder}</title>
<link rel="icon" href="data:,">
<style>STYLE</style>
</head>
<body>
<header>
<p class="holder" dir="auto">${holder}</p>
<h1>Your personal data</h1>
<p class="lead">This is everything that <strong dir="auto">${holder}</strong> held about you in this system on ${dateOf(at)}.</p>
<dl>
<div><dt>Identifier</dt><dd dir="auto">${person.external_id ?? person.id}</dd></div>
<div><dt>State</dt><dd>${states[person.state]}</dd></div>
<div><dt>Made at</dt><dd>${timeOf(at)}, by ${made_by}</dd></div>
${contact_email && html`<div><dt>Questions</dt><dd><a href="mailto:${contact_email}">${contact_email}</a></dd></div>`}
${privacy_url && html`<div><dt>Privacy notice</dt><dd><a href="${privacy_url}" rel="noreferrer">${privacy_url}</a></dd></div>`}
</dl>
<nav aria-label="Contents"><ul>
${sections.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}
</ul></nav>
<p class="small">Internal identifier ${person.id}. State of the change log: number ${head} of ${log_id}.</p>
</header>
<main>
`.text.split('STYLE') as [string, string]
  return new Html(before + pageStyle + after)
}

function footOf({ lines }: End): Html {
  const count = Object.values(lines).reduce((sum, each) => sum + each, 0)
  return html`</main>
<footer><p>This page is complete. It shows ${count - 1} entries.</p></footer>
</body>
</html>
`
}
