import type { HtmlPage, PageCall } from '../route/page.ts'
import type { Refusal } from '../values/errors.ts'
import { html } from '../values/html.ts'
import { choosePageLanguage } from './languages.ts'
import { layOut } from './layout.ts'
import { type Words, words } from './words.ts'

/**
 * The page for a request that is refused or fails. It tells nothing of an organization or a person, because the link may not
 * be one of theirs.
 */
export function refusalPage({ acceptLanguage }: PageCall, { status }: Refusal): HtmlPage {
  const language = choosePageLanguage(null, acceptLanguage, null)
  const { title, text } = sentencesOf(status, words[language])
  return layOut({ language, words: words[language] }, title, html`<p>${text}</p>`, status)
}

function sentencesOf(status: number, texts: Words): { title: string; text: string } {
  if (status === 404 || status === 410) return { title: texts.invalidTitle, text: texts.invalid }
  if (status === 429) return { title: texts.tooManyTitle, text: texts.tooMany }
  if (status < 500) return { title: texts.unreadableTitle, text: texts.unreadable }
  return { title: texts.failedTitle, text: texts.failed }
}
