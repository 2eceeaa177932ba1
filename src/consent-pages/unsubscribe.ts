import type { HtmlPage, PageCall } from '../route/page.ts'
import { html } from '../values/html.ts'
import { writeAnswers } from './answer.ts'
import { isOneClick } from './form.ts'
import { layOut } from './layout.ts'
import { type Choice, isAnswered, linkedChoices, type OpenLink, openLink, preferencesPathOf } from './open-link.ts'
import type { Words } from './words.ts'

/** A refusal by a link within this time repeats the last one, because mail programs may send a request twice. */
const repeatMs = 60_000

/**
 * Whether the person has refused this by a link. Another refusal does not count: an answer that arrives later may have
 * been collected between that refusal and this one.
 */
const isRefusedByLink = (choice: Choice): boolean =>
  isAnswered(choice, false) && !choice.answer?.undated && linkMethods.has(choice.answer?.method ?? '')
const linkMethods: ReadonlySet<string> = new Set(['unsubscribe_link', 'preference_page'])

/** The page that asks whether the person wants to unsubscribe. */
export async function showUnsubscribe(call: PageCall): Promise<HtmlPage> {
  const open = await openLink(call, 'unsubscribe')
  const choices = linkedChoices(open)
  if (choices.every(isRefusedByLink)) return unsubscribedPage(open, choices)
  const { words } = open.frame
  const content = html`<p>${words.unsubscribeQuestion}</p>
${choiceList(choices, words)}
<form method="post"><button type="submit" name="unsubscribe" value="yes">${words.unsubscribe}</button></form>`
  return layOut(open.frame, words.unsubscribeTitle, content)
}

/**
 * Refuses the purposes of the link. A person's mail program (RFC 8058) and the button on the page send the same
 * request, and the `source` of the answer distinguishes them.
 */
export async function unsubscribe(call: PageCall): Promise<HtmlPage> {
  const open = await openLink(call, 'unsubscribe')
  const source = isOneClick(call) ? 'List-Unsubscribe=One-Click' : 'page'
  const done = await writeAnswers(call, open, current =>
    linkedChoices(current)
      .filter(choice => !isRefusedByLink(choice) || Date.parse(choice.answer!.answered_at) < Date.now() - repeatMs)
      .map(({ type, channel }) => ({
        consent_type_id: type.id,
        channel,
        state: false,
        method: 'unsubscribe_link',
        source,
      })),
  )
  return unsubscribedPage(done, linkedChoices(done))
}

/** A list of purposes with their channels. */
export const choiceList = (choices: readonly Choice[], words: Words) =>
  html`<ul>${choices.map(
    ({ type, channel }) => html`<li dir="auto">${words.by(type.name, words.channels[channel])}</li>
`,
  )}</ul>`

function unsubscribedPage(open: OpenLink, choices: readonly Choice[]): HtmlPage {
  const { words } = open.frame
  const content = html`<p>${words.unsubscribedIntroduction}</p>
${choiceList(choices, words)}
<p><a href="${preferencesPathOf(open)}">${words.toPreferences}</a></p>`
  return layOut(open.frame, words.unsubscribedTitle, content)
}
