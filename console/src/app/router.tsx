import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
import { validateAccessSearch } from '../access/search.ts'
import { validateChangesSearch } from '../changes/search.ts'
import { validateConsentsSearch } from '../consents/search.ts'
import { chosenColumns } from '../people/chosen-columns.ts'
import { listOf, peopleQuery } from '../people/people-query.ts'
import { validatePeopleSearch } from '../people/search.ts'
import { validatePersonSearch } from '../person/search.ts'
import { validateRecordSearch, validateRecordsSearch } from '../records/search.ts'
import { validateNewAttributeSearch, validateSchemaSearch } from '../schema/search.ts'
import { Loading } from '../ui/page.tsx'
import { NotFoundPage, PageFault } from './fault-pages.tsx'
import { queryClient } from './query-client.ts'
import { onlyValid, parseSearch, stringifySearch } from './search-params.ts'
import { sessionQuery } from './session.tsx'
import { Shell } from './shell.tsx'
import { validateSignInSearch } from './sign-in-search.ts'

const root = createRootRoute({ notFoundComponent: NotFoundPage })

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: onlyValid(validateSignInSearch),
  component: lazyRouteComponent(() => import('./sign-in-page.tsx'), 'SignInPage'),
})

/** Everything below the shell needs a session. */
const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  beforeLoad: async ({ location }) => {
    const session = await queryClient.ensureQueryData(sessionQuery)
    if (session === null)
      throw redirect({ to: '/sign-in', search: location.href === '/' ? {} : { next: location.href } })
  },
  pendingComponent: Loading,
  component: Shell,
})

const home = createRoute({
  getParentRoute: () => shell,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/people' })
  },
})

/** Apart from the route, whose loader depends on its type. */
const validatePeople = onlyValid(validatePeopleSearch)

const loadPeoplePage = () => import('../people/people-page.tsx')

const people = createRoute({
  getParentRoute: () => shell,
  path: '/people',
  validateSearch: validatePeople,
  loaderDeps: ({ search }) => search,
  // The rows are requested while the code of the page comes. The page shows an error of this request.
  loader: ({ deps }) => {
    void queryClient.prefetchInfiniteQuery(peopleQuery(listOf(deps, chosenColumns(deps.columns))))
  },
  component: lazyRouteComponent(loadPeoplePage, 'PeoplePage'),
})
// The code of the page on which most people begin comes while the session is read.
if (location.pathname === '/console/people') loadPeoplePage().catch(() => {})

const person = createRoute({
  getParentRoute: () => shell,
  path: '/people/$externalId',
  validateSearch: onlyValid(validatePersonSearch),
  component: lazyRouteComponent(() => import('../person/person-page.tsx'), 'PersonPage'),
})

const stacks = createRoute({
  getParentRoute: () => shell,
  path: '/records',
  component: lazyRouteComponent(() => import('../records/stacks-page.tsx'), 'StacksPage'),
})

const records = createRoute({
  getParentRoute: () => shell,
  path: '/records/$stackKey',
  validateSearch: onlyValid(validateRecordsSearch),
  component: lazyRouteComponent(() => import('../records/records-page.tsx'), 'RecordsPage'),
})

const record = createRoute({
  getParentRoute: () => shell,
  path: '/records/$stackKey/$recordId',
  validateSearch: onlyValid(validateRecordSearch),
  component: lazyRouteComponent(() => import('../records/record-page.tsx'), 'RecordPage'),
})

const schema = createRoute({
  getParentRoute: () => shell,
  path: '/schema',
  validateSearch: onlyValid(validateSchemaSearch),
  component: lazyRouteComponent(() => import('../schema/schema-page.tsx'), 'SchemaPage'),
})

const newAttribute = createRoute({
  getParentRoute: () => shell,
  path: '/schema/new-attribute',
  validateSearch: onlyValid(validateNewAttributeSearch),
  component: lazyRouteComponent(() => import('../schema/new-attribute-page.tsx'), 'NewAttributePage'),
})

const attribute = createRoute({
  getParentRoute: () => shell,
  path: '/schema/attributes/$attributeId',
  component: lazyRouteComponent(() => import('../schema/attribute-page.tsx'), 'AttributePage'),
})

const consentType = createRoute({
  getParentRoute: () => shell,
  path: '/schema/consent-types/$consentTypeId',
  component: lazyRouteComponent(() => import('../schema/consent-type-page.tsx'), 'ConsentTypePage'),
})

const transfer = createRoute({
  getParentRoute: () => shell,
  path: '/import',
  component: lazyRouteComponent(() => import('../transfer/import-page.tsx'), 'ImportPage'),
})

const exporting = createRoute({
  getParentRoute: () => shell,
  path: '/export',
  component: lazyRouteComponent(() => import('../transfer/export-page.tsx'), 'ExportPage'),
})

const consents = createRoute({
  getParentRoute: () => shell,
  path: '/consents',
  validateSearch: onlyValid(validateConsentsSearch),
  component: lazyRouteComponent(() => import('../consents/consents-page.tsx'), 'ConsentsPage'),
})

const ledger = createRoute({
  getParentRoute: () => shell,
  path: '/ledger',
  component: lazyRouteComponent(() => import('../consents/ledger-page.tsx'), 'LedgerPage'),
})

const changes = createRoute({
  getParentRoute: () => shell,
  path: '/changes',
  validateSearch: onlyValid(validateChangesSearch),
  component: lazyRouteComponent(() => import('../changes/changes-page.tsx'), 'ChangesPage'),
})

const webhooks = createRoute({
  getParentRoute: () => shell,
  path: '/webhooks',
  component: lazyRouteComponent(() => import('../webhooks/webhooks-page.tsx'), 'WebhooksPage'),
})

const webhook = createRoute({
  getParentRoute: () => shell,
  path: '/webhooks/$webhookId',
  component: lazyRouteComponent(() => import('../webhooks/webhook-page.tsx'), 'WebhookPage'),
})

const operations = createRoute({
  getParentRoute: () => shell,
  path: '/operations',
  component: lazyRouteComponent(() => import('../operations/operations-page.tsx'), 'OperationsPage'),
})

const access = createRoute({
  getParentRoute: () => shell,
  path: '/access',
  validateSearch: onlyValid(validateAccessSearch),
  component: lazyRouteComponent(() => import('../access/access-page.tsx'), 'AccessPage'),
})

const pages = [
  home,
  people,
  person,
  stacks,
  records,
  record,
  schema,
  newAttribute,
  attribute,
  consentType,
  transfer,
  exporting,
  consents,
  ledger,
  changes,
  webhooks,
  webhook,
  operations,
  access,
] as const

export const router = createRouter({
  routeTree: root.addChildren([signIn, shell.addChildren(pages)]),
  basepath: '/console',
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  defaultErrorComponent: PageFault,
  scrollRestoration: true,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
