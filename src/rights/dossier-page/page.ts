import type { Definitions } from '../../organizations/definitions.ts'
import type { PageLanguage } from '../../organizations/settings-schema.ts'
import { pagePolicy } from '../../route/page-headers.ts'
import { Html, html } from '../../values/html.ts'
import type { DossierLine, LineType, SectionType } from '../dossier-schema.ts'
import { de } from './languages/de.ts'
import { type DossierWords, en } from './languages/en.ts'
import { es } from './languages/es.ts'
import { fr } from './languages/fr.ts'
import { it } from './languages/it.ts'
import { pageSections } from './sections.ts'
import { pageStyle } from './style.ts'
import { dateOf, labelOf, type Page, timeOf } from './values.ts'

const wordsIn: Record<PageLanguage, DossierWords> = { en, de, fr, it, es }

/**
 * The security policy of the page. It applies to a page that kith serves and to a page that a browser opens as a file.
 */
export const dossierPolicy = pagePolicy(pageStyle)

/**
 * Prints a dossier in parts: the texts around the lines of a section, each line, and the text after the last one.
 * `fields` is the JSON of a line's members except its type.
 */
export type DossierPrinter = {
  section(type: LineType, isEmpty: boolean): readonly [begin: string, end: string]
  line(type: LineType, fields: string): string
  end(lines: Record<string, number>): string
}

type Line = Exclude<DossierLine, { type: 'end' }>

/**
 * Prints a dossier as one HTML page while its lines arrive. The page has no scripts, loads nothing, and escapes every
 * value. The sections have the order of `types`, which is the order of the lines.
 */
export function createPagePrinter(
  language: PageLanguage,
  definitions: Definitions,
  types: readonly SectionType[],
): DossierPrinter {
  const page: Page = { language, words: wordsIn[language], definitions }
  let previous: Line | undefined
  return {
    section: (type, isEmpty) => (type === 'about' ? ['', ''] : sectionOf(page, type, isEmpty)),
    line(type, fields) {
      const line: Line = { type, ...JSON.parse(fields) }
      if (line.type === 'about') return headOf(page, line, types).text
      const print = pageSections[line.type].print as (page: Page, line: Line, before?: Line) => Html
      const { text } = print(page, line, previous?.type === type ? previous : undefined)
      previous = line
      return text
    },
    end(lines) {
      const entries = Object.values(lines).reduce((sum, count) => sum + count, 0) - 1
      return footOf(page, entries).text
    },
  }
}

function sectionOf({ words }: Page, type: SectionType, isEmpty: boolean): [begin: string, end: string] {
  const [title, about, none] = words.sections[type]
  const [kind, text] = isEmpty ? ['none', none] : ['about', about]
  const head = html`<section id="${type}"><h2>${title}</h2><p class="${kind}">${text}</p>`.text
  const end = '</section>\n'
  const { form } = pageSections[type]
  if (isEmpty || form === 'cards') return [head, end]
  if (form === 'list') return [`${head}<dl>`, `</dl>${end}`]
  const columns = form.map(label => html`<th scope="col">${words.labels[label]}</th>`)
  return [`${head}${html`<table><thead><tr>${columns}</tr></thead><tbody>`.text}`, `</tbody></table>${end}`]
}

type About = Extract<DossierLine, { type: 'about' }>

function headOf(
  page: Page,
  { person, organization, at, head, log_id, made_by }: About,
  types: readonly SectionType[],
): Html {
  const { words, language } = page
  const { facts } = words
  const holder = organization.display_name ?? organization.key
  const { contact_email, privacy_url } = organization
  // A policy in the page itself cannot contain `frame-ancestors`.
  const policy = dossierPolicy.filter(rule => !rule.startsWith('frame-ancestors'))
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta http-equiv="Content-Security-Policy" content="${policy.join('; ')}">
<title>${words.title(holder)}</title>
<link rel="icon" href="data:,">
<style>${new Html(pageStyle)}</style>
</head>
<body>
<header>
<p class="holder" dir="auto">${holder}</p>
<h1>${words.heading}</h1>
<p class="lead">${words.lead(html`<strong dir="auto">${holder}</strong>`, dateOf(page, at))}</p>
<dl>
<div><dt>${labelOf(page, 'external_id')}</dt><dd dir="auto">${person.external_id ?? person.id}</dd></div>
<div><dt>${labelOf(page, 'state')}</dt><dd>${words.states[person.state]}</dd></div>
<div><dt>${facts.made}</dt><dd>${words.madeBy(timeOf(page, at), made_by)}</dd></div>
${contact_email && html`<div><dt>${facts.questions}</dt><dd><a href="mailto:${contact_email}">${contact_email}</a></dd></div>`}
${privacy_url && html`<div><dt>${facts.privacy}</dt><dd><a href="${privacy_url}" rel="noreferrer">${privacy_url}</a></dd></div>`}
</dl>
<nav aria-label="${facts.contents}"><ul>
${types.map(type => html`<li><a href="#${type}">${words.sections[type][0]}</a></li>`)}
</ul></nav>
<p class="small">${words.numbers(person.id, head, log_id)}</p>
</header>
<main>
`
}

const footOf = ({ words }: Page, entries: number): Html =>
  html`</main>
<footer><p>${words.complete(entries)}</p></footer>
</body>
</html>
`
