import { isUnlimited, mayUse } from './field-rights.ts'
import type { Session } from './session.tsx'

/** The pages of the navigation. A page is shown if the session has all scopes of one of the page's lists. */
const pages = [
  { to: '/people', label: 'people', scope: 'people:read', key: 'p' },
  { to: '/duplicates', label: 'duplicates', scope: 'people:read', key: 'm' },
  { to: '/records', label: 'records', scope: 'records:read', key: 'r' },
  { to: '/reports', label: 'reports', scope: ['people:read', 'records:read schema:read'], key: 't' },
  { to: '/schema', label: 'schema', scope: 'schema:read', key: 's' },
  { to: '/import', label: 'import', scope: 'people:write schema:read', key: 'i' },
  { to: '/jobs', label: 'jobs', scope: 'people:write', key: 'j' },
  { to: '/export', label: 'export', scope: 'people:read exports:read', key: 'e' },
  { to: '/consents', label: 'consents', scope: 'consents:read', key: 'c' },
  { to: '/ledger', label: 'ledger', scope: 'consents:read', key: 'l' },
  { to: '/deliverability', label: 'deliverability', scope: ['people:read', 'webhooks:read'], key: 'd' },
  { to: '/changes', label: 'changes', scope: 'changes:read', key: 'h' },
  { to: '/webhooks', label: 'webhooks', scope: 'webhooks:read', key: 'w' },
  { to: '/lifetimes', label: 'lifetimes', scope: 'people:erase', key: 'f' },
  { to: '/erasures', label: 'erasures', scope: 'people:erase', key: 'u' },
  { to: '/operations', label: 'operations', scope: 'operations:read', key: 'o' },
  { to: '/access', label: 'access', scope: 'access:read', key: 'a' },
  { to: '/access-log', label: 'accessLog', scope: 'access:read', key: 'v' },
] as const

export type NavigationPage = (typeof pages)[number]

/** The pages with data of all people and records. They are hidden for a role that closes fields. */
const ofUnlimited: ReadonlySet<string> = new Set([
  '/ledger',
  '/deliverability',
  '/lifetimes',
  '/erasures',
  '/access-log',
])

/**
 * The pages that the scopes of a session allow. The search for duplicates shows whole people, so the role must open all
 * their fields.
 */
export const pagesOf = ({ scopes }: Pick<Session, 'scopes'>): NavigationPage[] =>
  pages
    .filter(({ scope }) => [scope].flat().some(list => list.split(' ').every(each => scopes.includes(each))))
    .filter(({ to }) => to !== '/duplicates' || mayUse('read', 'people', '*'))
    .filter(({ to }) => isUnlimited() || !ofUnlimited.has(to))
