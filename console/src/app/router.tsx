import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
import { accountsQuery } from '../access/queries.ts'
import { validateAccessSearch } from '../access/search.ts'
import { validateAccessLogSearch } from '../access-log/search.ts'
import { validateChangesSearch } from '../changes/search.ts'
import { checkpointQuery, ledgerKeysQuery, statisticsQuery } from '../consents/queries.ts'
import { validateConsentsSearch } from '../consents/search.ts'
import { validateDeliverabilitySearch } from '../deliverability/search.ts'
import { groupsQuery } from '../duplicates/queries.ts'
import { noDefinitions, schemaQuery } from '../entity/schema.ts'
import { validateEntitySearch } from '../entity/search.ts'
import { foundQuery } from '../entity-page/queries.ts'
import { erasuresQuery } from '../erasures/queries.ts'
import { jobsQuery } from '../jobs/queries.ts'
import { ruleQuery, rulesQuery } from '../lifetimes/queries.ts'
import { chosenColumns } from '../list/chosen-columns.ts'
import { listOf, listQuery } from '../list/queries.ts'
import { type ListSearch, validateListSearch } from '../list/search.ts'
import { doctorQuery, metricsQuery } from '../operations/queries.ts'
import { validateReportSearch } from '../reports/search.ts'
import { validateNewAttributeSearch, validateSchemaSearch } from '../schema/search.ts'
import { Loading } from '../ui/page.tsx'
import { webhookQuery, webhooksQuery } from '../webhooks/queries.ts'
import { NotFoundPage, PageFault } from './fault-pages.tsx'
import { isUnlimited, usableScopes } from './field-rights.ts'
import { pagesOf } from './navigation.ts'
import { queryClient } from './query-client.ts'
import { onlyValid, parseSearch, stringifySearch, validateSignInSearch } from './search-params.ts'
import { sessionQuery } from './session.tsx'
import { Shell } from './shell.tsx'

const root = createRootRoute({ notFoundComponent: NotFoundPage })

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: onlyValid(validateSignInSearch),
  component: lazyRouteComponent(() => import('./sign-in-page.tsx'), 'SignInPage'),
})

const invitation = createRoute({
  getParentRoute: () => root,
  path: '/invitation',
  component: lazyRouteComponent(() => import('./invitation-page.tsx'), 'InvitationPage'),
})

/** All routes below the shell need a session. */
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

/** This is separate from the routes because the loaders depend on its type. */
const validateList = onlyValid(validateListSearch)
const validateEntity = onlyValid(validateEntitySearch)
const validateConsents = onlyValid(validateConsentsSearch)

/** The definitions, unless the session may not read them. */
const loadSchema = async () => {
  const session = await queryClient.ensureQueryData(sessionQuery)
  return session?.scopes.includes('schema:read') ? queryClient.ensureQueryData(schemaQuery) : undefined
}
/** Pages of the schema need the definitions before they show anything. Fresh definitions are not read again. */
const needSchema = () => queryClient.ensureQueryData(schemaQuery)
/** The requests of a page begin while its code loads. The page shows their errors. */
const loadList = (owner: string, search: ListSearch) =>
  void loadSchema()
    .then((schema = noDefinitions) => listOf(owner, search, chosenColumns(owner, search.columns, schema)))
    .then(
      list => queryClient.prefetchInfiniteQuery(listQuery(list)),
      () => {},
    )

const loadListPage = () => import('../list/list-page.tsx')

// The code of the most common first page loads while the session is read.
if (location.pathname === '/console/people') loadListPage().catch(() => {})

const pages = [
  createRoute({
    getParentRoute: () => shell,
    path: '/',
    beforeLoad: async () => {
      const session = await queryClient.ensureQueryData(sessionQuery)
      const [first] = session ? pagesOf({ scopes: usableScopes(session.scopes) }) : []
      throw redirect({ to: first?.to ?? '/people' })
    },
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/people',
    validateSearch: validateList,
    loaderDeps: ({ search }) => search,
    loader: ({ deps }) => {
      const list = listOf('people', deps, chosenColumns('people', deps.columns, noDefinitions))
      void queryClient.prefetchInfiniteQuery(listQuery(list))
    },
    component: lazyRouteComponent(loadListPage, 'ListPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/people/$externalId',
    validateSearch: validateEntity,
    loaderDeps: ({ search: { by } }) => ({ by }),
    loader: ({ params: { externalId: identifier }, deps: { by } }) =>
      void queryClient.prefetchQuery(foundQuery({ owner: 'people', identifier, by })),
    component: lazyRouteComponent(() => import('../entity-page/entity-page.tsx'), 'EntityPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/duplicates',
    loader: () => void queryClient.prefetchInfiniteQuery(groupsQuery),
    component: lazyRouteComponent(() => import('../duplicates/duplicates-page.tsx'), 'DuplicatesPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/jobs',
    loader: () => {
      void loadSchema().catch(() => {})
      void queryClient.prefetchInfiniteQuery(jobsQuery)
    },
    component: lazyRouteComponent(() => import('../jobs/jobs-page.tsx'), 'JobsPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/records',
    loader: () => void loadSchema().catch(() => {}),
    component: lazyRouteComponent(() => import('../records/stacks-page.tsx'), 'StacksPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/records/$stackKey',
    validateSearch: validateList,
    loaderDeps: ({ search }) => search,
    loader: ({ params, deps }) => loadList(params.stackKey, deps),
    component: lazyRouteComponent(loadListPage, 'ListPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/records/$stackKey/$recordId',
    validateSearch: validateEntity,
    loaderDeps: ({ search: { by } }) => ({ by }),
    loader: ({ params: { stackKey: owner, recordId: identifier }, deps: { by } }) =>
      void queryClient.prefetchQuery(foundQuery({ owner, identifier, by })),
    component: lazyRouteComponent(() => import('../entity-page/entity-page.tsx'), 'EntityPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/reports',
    validateSearch: onlyValid(validateReportSearch),
    loader: () => void loadSchema().catch(() => {}),
    component: lazyRouteComponent(() => import('../reports/report-page.tsx'), 'ReportPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/schema',
    validateSearch: onlyValid(validateSchemaSearch),
    loader: needSchema,
    component: lazyRouteComponent(() => import('../schema/schema-page.tsx'), 'SchemaPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/schema/new-attribute',
    validateSearch: onlyValid(validateNewAttributeSearch),
    loader: needSchema,
    component: lazyRouteComponent(() => import('../schema/new-attribute-page.tsx'), 'NewAttributePage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/schema/attributes/$attributeId',
    loader: needSchema,
    component: lazyRouteComponent(() => import('../schema/attribute-page.tsx'), 'AttributePage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/schema/consent-types/$consentTypeId',
    loader: needSchema,
    component: lazyRouteComponent(() => import('../schema/consent-type-page.tsx'), 'ConsentTypePage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/import',
    loader: () => void loadSchema().catch(() => {}),
    component: lazyRouteComponent(() => import('../transfer/import-page.tsx'), 'ImportPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/export',
    loader: () => void loadSchema().catch(() => {}),
    component: lazyRouteComponent(() => import('../transfer/export-page.tsx'), 'ExportPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/consents',
    validateSearch: validateConsents,
    loaderDeps: ({ search }) => search,
    loader: ({ deps }) => void queryClient.prefetchQuery(statisticsQuery(deps.interval ?? 'day')),
    component: lazyRouteComponent(() => import('../consents/consents-page.tsx'), 'ConsentsPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/ledger',
    loader: () => {
      void queryClient.prefetchQuery(checkpointQuery)
      void queryClient.prefetchQuery(ledgerKeysQuery)
    },
    component: lazyRouteComponent(() => import('../consents/ledger-page.tsx'), 'LedgerPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/deliverability',
    validateSearch: onlyValid(validateDeliverabilitySearch),
    component: lazyRouteComponent(() => import('../deliverability/deliverability-page.tsx'), 'DeliverabilityPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/changes',
    validateSearch: onlyValid(validateChangesSearch),
    component: lazyRouteComponent(() => import('../changes/changes-page.tsx'), 'ChangesPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/webhooks',
    loader: () => void queryClient.prefetchQuery(webhooksQuery),
    component: lazyRouteComponent(() => import('../webhooks/webhooks-page.tsx'), 'WebhooksPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/webhooks/$webhookId',
    loader: ({ params }) => void queryClient.prefetchQuery(webhookQuery(Number(params.webhookId))),
    component: lazyRouteComponent(() => import('../webhooks/webhook-page.tsx'), 'WebhookPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/lifetimes',
    loader: () => void queryClient.prefetchQuery(rulesQuery),
    component: lazyRouteComponent(() => import('../lifetimes/lifetimes-page.tsx'), 'LifetimesPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/lifetimes/$ruleId',
    loader: ({ params }) => void queryClient.prefetchQuery(ruleQuery(Number(params.ruleId))),
    component: lazyRouteComponent(() => import('../lifetimes/rule-page.tsx'), 'RulePage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/erasures',
    loader: () => void queryClient.prefetchInfiniteQuery(erasuresQuery),
    component: lazyRouteComponent(() => import('../erasures/erasures-page.tsx'), 'ErasuresPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/operations',
    loader: () => {
      void queryClient.prefetchQuery(metricsQuery)
      void queryClient.prefetchQuery(doctorQuery)
    },
    component: lazyRouteComponent(() => import('../operations/operations-page.tsx'), 'OperationsPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/access',
    validateSearch: onlyValid(validateAccessSearch),
    loader: () => void (isUnlimited() && queryClient.prefetchQuery(accountsQuery)),
    component: lazyRouteComponent(() => import('../access/access-page.tsx'), 'AccessPage'),
  }),
  createRoute({
    getParentRoute: () => shell,
    path: '/access-log',
    validateSearch: onlyValid(validateAccessLogSearch),
    component: lazyRouteComponent(() => import('../access-log/access-log-page.tsx'), 'AccessLogPage'),
  }),
] as const

export const router = createRouter({
  routeTree: root.addChildren([signIn, invitation, shell.addChildren(pages)]),
  basepath: '/console',
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  // The queries define how long a response is fresh.
  defaultPreloadStaleTime: 0,
  defaultPendingComponent: Loading,
  defaultErrorComponent: PageFault,
  scrollRestoration: true,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
