import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const checkout = join(import.meta.dirname, '../..')

/** The pages of the site by their use, in the order in which they are read. A page is a file of docs/, or a key of `elsewhere`. */
export const navigation = [
  { text: 'Start', pages: ['index', 'first-steps', 'when-which'] },
  {
    text: 'How to use it',
    pages: ['moving-in', 'import-export', 'schema-file', 'sending', 'sql', 'assistants', 'n8n', 'seed'],
  },
  {
    text: 'How to use the console',
    pages: [
      'console',
      ...['people', 'person', 'records', 'schema', 'consents', 'reports', 'transfer', 'operations'].map(
        name => `console/${name}`,
      ),
    ],
  },
  { text: 'How to protect people', pages: ['data-protection-officer', 'rights', 'lifetimes'] },
  {
    text: 'How to operate it',
    pages: [
      ...['operations', 'at-2-am', 'runbook', 'backups', 'keys', 'doctor'],
      ...['more-servers', 'scale', 'cluster', 'metrics', 'tracing'],
    ],
  },
  {
    text: 'Reference: the API',
    pages: ['the-api', 'api-people', 'api-consents', 'queries', 'api-writes', 'changes', 'webhooks', 'api-access'],
  },
  {
    text: 'Reference: people',
    pages: ['consent', 'receipts', 'ledger', 'identity', 'history', 'deliverability', 'roles', 'access-log'],
  },
  { text: 'Reference: programs', pages: ['cli', 'configuration', 'client', 'python', 'glossary'] },
  {
    text: 'Explanation',
    pages: [
      'data-model',
      'proofs',
      'durability',
      'security',
      'security-asvs',
      'promise',
      'faq',
      'internals',
      'decisions/README',
      'changelog',
    ],
  },
]

/** The pages of the site that have another name than their file. */
export const elsewhere: Record<string, string> = {
  // The service shows its endpoints at /docs/api.
  'the-api': 'docs/api.md',
  client: 'client/README.md',
  changelog: 'CHANGELOG.md',
  security: 'SECURITY.md',
}

/** The file of a page, below the checkout. */
export const fileOf = (page: string) => elsewhere[page] ?? `docs/${page}.md`

/** The page of a file, without its extension. */
export const pageOf = (file: string): string | undefined =>
  Object.keys(elsewhere).find(page => elsewhere[page] === file) ?? /^docs\/(.+)\.md$/.exec(file)?.[1]

/** The address of a page below the site. */
export const addressOf = (page: string) => `/${page.replace(/(^|\/)(index|README)$/, '$1')}`

export const titleOf = (page: string) =>
  /^# (.*)$/m.exec(readFileSync(join(checkout, fileOf(page)), 'utf8'))![1]!.replaceAll('`', '')

/** The anchor of a heading of a document, as code hosts generate it. */
export const anchorOf = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
