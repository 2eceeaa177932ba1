import type { HtmlPage, PageCall } from '../route/page.ts'
import { html } from '../values/html.ts'
import { writeAnswers } from './answer.ts'
import { readForm, readShown, shownField } from './form.ts'
import { layOut } from './layout.ts'
import {
  type Choice,
  linkedChoices,
  type OpenLink,
  openLink,
  preferencesPathOf,
  readTexts,
  type ShownText,
  withTexts,
} from './open-link.ts'
import { consentText } from './preferences.ts'
import { choiceList } from './unsubscribe.ts'

/** The page that asks the person to confirm a grant. */
export async function showConfirmation(call: PageCall): Promise<HtmlPage> {
  return confirmationPage(call, await openLink(call, 'confirm'))
}

/**
 * Confirms the pending grant of the link. A link confirms no other answer: a person who has refused since stays
 * refused.
 */
export async function confirm(call: PageCall): Promise<HtmlPage> {
  const open = await openLink(call, 'confirm')
  const [shown] = readShown(open, readForm(call)) ?? []
  if (!shown) return confirmationPage(call, open, 400)
  const done = await writeAnswers(call, open, current => {
    const { type, channel, answer } = linkedChoice(current)
    if (!answer?.pending) return []
    const { text_version } = shown
    return [{ consent_type_id: type.id, channel, state: true, method: 'double_opt_in', text_version }]
  })
  return confirmationPage(call, done)
}

/**
 * The choice of the link, which names a purpose and a channel. Throws a Fault of 410 if it can no longer be answered.
 */
const linkedChoice = (open: OpenLink): Choice => linkedChoices(open)[0]!

async function confirmationPage(call: PageCall, open: OpenLink, status = 200): Promise<HtmlPage> {
  const { frame } = open
  const { words } = frame
  const choice = linkedChoice(open)
  const { answer, type } = choice
  const toPreferences = html`<p><a href="${preferencesPathOf(open)}">${words.toPreferences}</a></p>`
  if (!answer?.pending)
    return answer?.state
      ? layOut(
          frame,
          words.confirmedTitle,
          html`<p>${words.confirmedIntroduction}</p>
${choiceList([choice], words)}
${toPreferences}`,
        )
      : layOut(
          frame,
          words.nothingToConfirmTitle,
          html`<p>${words.nothingToConfirm}</p>
${toPreferences}`,
        )
  // The person confirms the text of the grant, even if there is a newer one.
  const text = await textOf(call, open, choice)
  const content = html`<p>${words.confirmQuestion}</p>
${choiceList([choice], words)}
${type.description && html`<p class="plain" dir="auto">${type.description}</p>`}
${text && consentText(text, type.name, words)}
<form method="post">${shownField(open, [{ ...choice, text }])}<button type="submit">${words.confirm}</button></form>`
  return layOut(frame, words.confirmTitle, content, status)
}

async function textOf(call: PageCall, open: OpenLink, choice: Choice): Promise<ShownText | undefined> {
  const version = choice.answer?.text_version
  if (version === undefined) return (await withTexts(call, open, [choice]))[0]?.text
  const reader = call.db.shareOf(open.link.organization_id, 'reads')
  const [text] = await readTexts(reader, open.link, [{ consent_type_id: choice.type.id, version }], call.signal)
  return text
}
