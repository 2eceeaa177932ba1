import type { Config } from '../config.ts'
import { type PageRoute, type Route, route } from '../http/pipeline/route.ts'
import { confirm, showConfirmation } from './confirm.ts'
import { createConsentLinks, paths } from './links.ts'
import { savePreferences, showPreferences } from './preferences.ts'
import { refusalPage } from './refusal-page.ts'
import { type ConsentLinksBody, consentLinks, consentLinksBody } from './schema.ts'
import { showUnsubscribe, unsubscribe } from './unsubscribe.ts'

/** The route table of consent links, by both identifiers of a person. */
export function linkRoutes(config: Config): Route[] {
  const shared = {
    method: 'POST',
    scope: 'people:write',
    tag: 'People',
    body: consentLinksBody,
    hasDefaults: true,
    answer: consentLinks,
    description:
      'The links open pages for the person, without a session: everyone who has a link can see and change the consents of ' +
      'this person. GET of a link changes nothing. Nothing is stored, so the links can be made for each message.',
  } as const
  return [
    route<ConsentLinksBody>({
      ...shared,
      path: '/v1/people/{external_id}/consent-links',
      params: { external_id: 'external_id' },
      operationId: 'createConsentLinks',
      summary: 'Make the consent links of a person',
      handle: async call => ({ status: 200, data: await createConsentLinks(call, config) }),
    }),
    route<ConsentLinksBody>({
      ...shared,
      path: '/v1/people/internal/{uuid}/consent-links',
      params: { uuid: 'uuid' },
      operationId: 'createConsentLinksById',
      summary: 'Make the consent links of a person by internal identifier',
      handle: async call => ({ status: 200, data: await createConsentLinks(call, config) }),
    }),
  ]
}

const formBytes = 16_384
/** A purpose on a channel takes at most 30 bytes of the form: what was shown of it, and the choice. */
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
