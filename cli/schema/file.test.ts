import { expect, it } from 'vitest'
import { noRules } from '../../src/values/attribute-rules.ts'
import { parseSchemaFile, SchemaFileError } from './file.ts'

const marketing = {
  key: 'marketing',
  channels: [
    { channel: 'email', is_default: true },
    { channel: 'sms', is_default: true },
  ],
}
const orders = { key: 'orders', kind: 'item' }
const total = { owner: 'orders', key: 'total', type: 'number' }

/** A file with the lists of a new organization, unless `content` replaces them. */
const fileOf = (content: object) => ({
  ...{ version: 1, stacks: [], attributes: [], consent_types: [marketing] },
  ...content,
})

/** Parses a file and returns the paths of its faults. */
function faultsOf(text: string): string[] {
  try {
    parseSchemaFile(Buffer.from(text), 'shop.json')
    return []
  } catch (error) {
    expect(error).toBeInstanceOf(SchemaFileError)
    const { message } = error as SchemaFileError
    expect(message).toMatch(/^shop\.json cannot be used:\n/)
    return [...message.matchAll(/^ {2}(\/\S*) \S/gm)].map(([, path]) => path!)
  }
}

it('parses a file as the service parses a body: it trims texts and fills in defaults', () => {
  const file = fileOf({ stacks: [{ ...orders, name: ' Orders ' }], attributes: [total] })
  expect(parseSchemaFile(Buffer.from(JSON.stringify(file)), 'shop.json')).toEqual({
    stacks: [{ ...orders, name: 'Orders', retention_days: null, label: null, summary: null, erased_with: null }],
    attributes: [
      {
        ...{ ...total, name: 'total', description: null, target_stack: null },
        ...{ cardinality: 'one', indexed: false, searchable: false, state: 'active', ...noRules },
      },
    ],
    consent_types: [
      {
        ...{ ...marketing, channels: marketing.channels.map(entry => ({ ...entry, double_opt_in: false })) },
        ...{ name: 'marketing', description: null, mandatory: false, default_state: false, state: 'active' },
      },
    ],
  })
})

it.each<[string, object | string, string[]]>([
  ['invalid JSON', '{', ['/']],
  ['a repeated JSON key', '{"version": 1, "version": 1}', ['/version']],
  ['an unknown version', { version: 2 }, ['/version']],
  ['an unknown key', { stacks: [{ ...orders, owner: 'me' }] }, ['/stacks/0/owner']],
  ['people as a stack', { stacks: [{ ...orders, key: 'people' }] }, ['/stacks/0/key']],
  ['a repeated stack', { stacks: [orders, orders] }, ['/stacks/1/key']],
  ['a retention of an item stack', { stacks: [{ ...orders, retention_days: 30 }] }, ['/stacks/0/retention_days']],
  ['a malformed label', { stacks: [{ ...orders, label: 'Order {number' }] }, ['/stacks/0/label']],
  ['a repeated attribute', { stacks: [orders], attributes: [total, total] }, ['/attributes/1/key']],
  ['a searchable number', { attributes: [{ ...total, searchable: true }] }, ['/attributes/0/searchable']],
  ['an indexed JSON attribute', { attributes: [{ ...total, type: 'json', indexed: true }] }, ['/attributes/0/indexed']],
  ['a pattern of a number', { attributes: [{ ...total, pattern: '^1' }] }, ['/attributes/0/pattern']],
  ['a unique attribute without an index', { attributes: [{ ...total, unique: true }] }, ['/attributes/0/unique']],
  ['a missing target', { attributes: [{ ...total, type: 'stack' }] }, ['/attributes/0/target_stack']],
  ['a target for a number', { attributes: [{ ...total, target_stack: 'orders' }] }, ['/attributes/0/target_stack']],
  [
    'a mandatory default',
    { consent_types: [{ ...marketing, mandatory: true }] },
    ['/consent_types/0/channels/0/is_default', '/consent_types/0/channels/1/is_default'],
  ],
  [
    'two defaults of a channel, a repeated channel and an archived default',
    {
      consent_types: [
        marketing,
        { key: 'news', channels: [{ channel: 'sms', is_default: true }, { channel: 'sms' }] },
        { key: 'old', state: 'archived', channels: [{ channel: 'email', is_default: true }] },
      ],
    },
    [
      '/consent_types/1/channels/1/channel',
      '/consent_types/2/channels/0/is_default',
      '/consent_types/1/channels/0/is_default',
      '/consent_types/2/channels/0/is_default',
    ],
  ],
])('refuses a file with %s and names the path', (_, content, paths) => {
  expect(faultsOf(typeof content === 'string' ? content : JSON.stringify(fileOf(content)))).toEqual(paths)
})
