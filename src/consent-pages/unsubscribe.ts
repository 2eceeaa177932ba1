import type { HtmlPage, PageCall } from '../route/page.ts'
import { html } from '../values/html.ts'
import { writeAnswers } from './answer.ts'
import { isOneClick } from './form.ts'
import { layOut } from './layout.ts'
import { type Choice, isAnswered, linkedChoices, type OpenLink, openLink, preferencesPathOf } from './open-link.ts'
import type { Words } from './words.ts'

/** A refusal by a link within so long repeats the last one: mail programs send the request again. */
const repeatMs = 60_000

/**
 * Whether the person has refused this here. A refusal that came otherwise does not do: an answer that arrives later may have been collected
 * after it, and before this one.
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
 * Refuses what the link is for. A person's mail program (RFC 8058) and the button on the page send the same request; the
 * answer's `source` tells them apart.
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
