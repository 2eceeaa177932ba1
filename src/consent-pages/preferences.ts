import type { HtmlPage, PageCall } from '../route/page.ts'
import { type Html, html } from '../values/html.ts'
import { type PageAnswer, writeAnswers } from './answer.ts'
import { readForm, readShown, type ShownChoice, shownField } from './form.ts'
import { layOut } from './layout.ts'
import {
  type Choice,
  type ChoiceWithText,
  choicesOf,
  isAnswered,
  type OpenLink,
  openLink,
  type ShownText,
  withTexts,
} from './open-link.ts'
import type { Words } from './words.ts'

/** The page with all purposes, each with a checkbox for each of its channels. */
export async function showPreferences(call: PageCall): Promise<HtmlPage> {
  return preferencesPage(call, await openLink(call, 'preferences'))
}

/** Stores the choices that the person changed on the page, and shows the page. */
export async function savePreferences(call: PageCall): Promise<HtmlPage> {
  const open = await openLink(call, 'preferences')
  const form = readForm(call)
  const shown = readShown(open, form)
  if (!shown) return preferencesPage(call, open, { problem: open.frame.words.outdated, status: 400 })
  const checked = new Set(form.getAll('agree'))
  // A choice has changed if it differs from the page. The current state does not count, because it may be newer than
  // the page.
  const changed = shown
    .map((choice, index) => ({ ...choice, wanted: checked.has(String(index)) }))
    .filter(({ isChosen, wanted }) => isChosen !== wanted)
  const saved = await writeAnswers(call, open, current =>
    changed.flatMap(({ consent_type_id, channel, wanted, text_version }): PageAnswer[] => {
      const choice = findChoice(current, { consent_type_id, channel })
      const isPending = wanted && choice?.answer?.pending
      if (!choice || isPending || isAnswered(choice, wanted)) return []
      return [{ consent_type_id, channel, state: wanted, method: 'preference_page', text_version }]
    }),
  )
  return savedPage(
    saved,
    changed.map(choice => findChoice(saved, choice)).filter(choice => choice !== undefined),
  )
}

const findChoice = (open: OpenLink, { consent_type_id, channel }: Pick<ShownChoice, 'consent_type_id' | 'channel'>) =>
  choicesOf(open).find(choice => choice.type.id === consent_type_id && choice.channel === channel)

async function preferencesPage(
  call: PageCall,
  open: OpenLink,
  { problem, status = 200 }: { problem?: string; status?: number } = {},
): Promise<HtmlPage> {
  const { frame, settings } = open
  const { words, language } = frame
  const { title = words.preferencesTitle, introduction = words.preferencesIntroduction } =
    settings.page_texts[language] ?? {}
  const choices = await withTexts(call, open, choicesOf(open))
  const purposes = Map.groupBy(
    choices.map((choice, index) => ({ ...choice, index })),
    ({ type }) => type,
  )
  const content = html`<p class="plain" dir="auto">${introduction}</p>
${problem && html`<p class="problem" role="alert">${problem}</p>`}
${
  choices.length === 0
    ? html`<p>${words.noPurposes}</p>`
    : html`<form method="post">
${shownField(open, choices)}
${[...purposes.values()].map(ofPurpose => purposeField(ofPurpose, words))}
<button type="submit">${words.save}</button>
</form>`
}`
  return layOut(frame, title, content, status)
}

function purposeField(choices: (ChoiceWithText & { index: number })[], words: Words): Html {
  const { type, text } = choices[0]!
  return html`<fieldset>
<legend dir="auto">${type.name}</legend>
${type.description && html`<p class="plain" dir="auto">${type.description}</p>`}
${text && consentText(text, type.name, words)}
${choices.map(
  ({ index, channel, isChosen, answer }) => html`<label><input type="checkbox" name="agree" value="${index}"${
    isChosen && html` checked`
  }><span>${words.channels[channel]}${answer?.pending && html` <span class="note">(${words.waits})</span>`}</span></label>
`,
)}</fieldset>
`
}

/** A text that people answer to, marked with its language, and with the link to its full version. */
export function consentText({ language, text, url }: ShownText, purpose: string, words: Words): Html {
  return html`<div class="text"><p class="plain" dir="auto" lang="${language.replaceAll('_', '-')}">${text}</p>
${url && html`<p><a href="${url}" rel="noreferrer">${words.moreAbout(purpose)}</a></p>`}</div>`
}

function savedPage({ frame }: OpenLink, changed: Choice[]): HtmlPage {
  const { words } = frame
  const content = html`${
    changed.length === 0
      ? html`<p>${words.nothingChanged}</p>`
      : html`<p>${words.savedIntroduction}</p>
<ul>${changed.map(({ type, channel, isChosen, answer }) => {
          const state = answer?.pending ? words.waits : isChosen ? words.granted : words.refused
          return html`<li><b dir="auto">${words.by(type.name, words.channels[channel])}</b> <span class="state">${state}</span></li>
`
        })}</ul>`
  }
<p><a href="">${words.backToPreferences}</a></p>`
  return layOut(frame, words.savedTitle, content)
}
