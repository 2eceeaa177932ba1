import type { Definitions } from '../../organizations/definitions.ts'
import type { PageLanguage } from '../../organizations/settings-schema.ts'
import { pagePolicy } from '../../route/page-headers.ts'
import { Html, html } from '../../values/html.ts'
import type { DossierLine } from '../dossier-schema.ts'
import { de } from './languages/de.ts'
import { en } from './languages/en.ts'
import { es } from './languages/es.ts'
import { fr } from './languages/fr.ts'
import { it } from './languages/it.ts'
import { pageSections } from './sections.ts'
import { pageStyle } from './style.ts'
import { dateOf, labelOf, type Page, timeOf } from './values.ts'
import type { DossierWords, SectionType } from './words.ts'

const wordsIn: Record<PageLanguage, DossierWords> = { en, de, fr, it, es }

/** What the page may do, in a browser that gets it from kith and in one that opens the file. */
export const dossierPolicy = pagePolicy(pageStyle)

/** Prints the lines of a dossier, each but the last, as parts of a page. */
export type PagePrinter = { line(line: PageLine): string; end(lines: Record<string, number>): string }

export type PageLine = Exclude<DossierLine, { type: 'end' }>

/**
 * Prints a dossier as one HTML page, as its lines arrive. It has neither scripts nor anything that is loaded from elsewhere, and every
 * value is escaped. The sections have the order of `types`, which is that of the lines.
 */
export function createPagePrinter(
  language: PageLanguage,
  definitions: Definitions,
  types: readonly SectionType[],
): PagePrinter {
  const page: Page = { language, words: wordsIn[language], definitions }
  let [next, end] = [0, '']
  let previous: PageLine | undefined
  const close = () => {
    const closing = end
    end = ''
    return closing
  }
  const empties = (until: number) => {
    const passed = types.slice(next, until)
    next = until
    return passed.map(type => openSection(page, type, 'none') + closeSection).join('')
  }
  return {
    line(line) {
      if (line.type === 'about') return headOf(page, line, types).text
      const index = types.indexOf(line.type)
      let text = ''
      if (index >= next) {
        text = close() + empties(index) + openSection(page, line.type, 'about')
        const { begin, end: closing } = partOf(page, line.type)
        text += begin
        end = closing + closeSection
        next = index + 1
        previous = undefined
      }
      const print = pageSections[line.type].print as (page: Page, line: PageLine, before?: PageLine) => Html
      text += print(page, line, previous).text
      previous = line
      return text
    },
    end(lines) {
      const entries = Object.values(lines).reduce((sum, count) => sum + count, 0) - 1
      return `${close()}${empties(types.length)}${footOf(page, entries).text}`
    },
  }
}

const closeSection = '</section>\n'

function openSection({ words }: Page, type: SectionType, kind: 'about' | 'none'): string {
  const [title, about, none] = words.sections[type]
  return html`<section id="${type}"><h2>${title}</h2><p class="${kind}">${kind === 'about' ? about : none}</p>`.text
}

function partOf(page: Page, type: SectionType): { begin: string; end: string } {
  const { form } = pageSections[type]
  if (form === 'list') return { begin: '<dl>', end: '</dl>' }
  if (form === 'cards') return { begin: '', end: '' }
  const columns = form.map(label => html`<th scope="col">${page.words.labels[label]}</th>`)
  return { begin: html`<table><thead><tr>${columns}</tr></thead><tbody>`.text, end: '</tbody></table>' }
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
  // A policy in the page itself cannot name who may frame it.
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
