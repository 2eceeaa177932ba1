import { paths } from '../consent-links/consent-links.ts'
import type { Config } from '../process/config.ts'
import type { HtmlPage, PageCall, PageRoute } from '../route/page.ts'
import { personAddresses } from '../route/person-addresses.ts'
import { dataOf, type Route, route } from '../route/route.ts'
import type { Refusal } from '../values/errors.ts'
import { html } from '../values/html.ts'
import { confirm, showConfirmation } from './confirm.ts'
import { choosePageLanguage } from './languages.ts'
import { layOut } from './layout.ts'
import { createConsentLinks } from './links.ts'
import { savePreferences, showPreferences } from './preferences.ts'
import { type ConsentLinksBody, consentLinks, consentLinksBody } from './schema.ts'
import { showUnsubscribe, unsubscribe } from './unsubscribe.ts'
import { type Words, words } from './words.ts'

/** The route table of consent links, by both identifiers of a person. */
export function linkRoutes(config: Config): Route[] {
  return personAddresses.map(({ path, params, suffix, by }) =>
    route<ConsentLinksBody>({
      method: 'POST',
      path: `${path}/consent-links`,
      params,
      scope: 'people:write',
      tag: 'People',
      operationId: `createConsentLinks${suffix}`,
      summary: `Make the consent links of a person${by}`,
      description:
        'The links open pages for the person, without a session: everyone who has a link can see and change the consents of ' +
        'this person. GET of a link changes nothing. Nothing is stored, so the links can be made for each message.',
      body: consentLinksBody,
      hasDefaults: true,
      answer: consentLinks,
      repeats: 'read',
      handle: dataOf(call => createConsentLinks(call, config)),
    }),
  )
}

const formBytes = 16_384
/** A purpose on a channel takes at most 30 bytes of the form: its state on the page, and the choice. */
const bytesPerConsentType = 64

/** The pages that the links open. */
export function linkPages({ limits }: Pick<Config, 'limits'>): PageRoute[] {
  const bodyBytes = formBytes + bytesPerConsentType * limits.consentTypes
  const pageAt = (path: string, pages: Pick<PageRoute, 'show' | 'submit'>): PageRoute => ({
    path: `${path}/{token}`,
    bodyBytes,
    refuse: refusalPage,
    ...pages,
  })
  return [
    pageAt(paths.preferences, { show: showPreferences, submit: savePreferences }),
    pageAt(paths.unsubscribe, { show: showUnsubscribe, submit: unsubscribe }),
    pageAt(paths.confirm, { show: showConfirmation, submit: confirm }),
  ]
}

/**
 * The page for a request that is refused or fails. It shows nothing about an organization or a person, because the link
 * may not be one of theirs.
 */
function refusalPage({ acceptLanguage }: PageCall, { status }: Refusal): HtmlPage {
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
