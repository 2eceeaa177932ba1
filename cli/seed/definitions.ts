import {
  channelDefaults,
  type Declared,
  type DeclaredAttribute,
  type DeclaredStack,
  defaultsOf,
} from '../schema/declared.ts'

/** The display name of a key: `placed_at` is Placed at. */
const nameOf = (key: string) => key[0]!.toUpperCase() + key.slice(1).replaceAll('_', ' ')

const stack = (
  key: string,
  kind: DeclaredStack['kind'],
  label: string,
  summary: DeclaredStack['summary'] = null,
): DeclaredStack => ({ ...defaultsOf.stack(key), key, kind, name: nameOf(key), label, summary })

/** Builds an attribute. The default is one value without an index; `more` overrides it. */
const attribute = (
  owner: string,
  key: string,
  type: DeclaredAttribute['type'],
  more: Partial<DeclaredAttribute> = {},
): DeclaredAttribute => ({ ...defaultsOf.attribute(key), owner, key, type, name: nameOf(key), ...more })

const to = (target_stack: string, cardinality: 'one' | 'many' = 'one') => ({ target_stack, cardinality })
const indexed = { indexed: true }

/** The definitions of the shop, without `marketing`, which every new organization has. */
export const shop: Declared = {
  stacks: [
    stack('companies', 'item', '{name}'),
    stack('products', 'item', '{name}'),
    stack('orders', 'item', '{buyer}: {products}', {
      ...{ time: 'placed_at', person: 'buyer' },
      measures: [{ op: 'count' }, { op: 'sum', key: 'total' }],
    }),
    stack('visits', 'event', '{visitor} on {page}', {
      ...{ time: 'at', person: 'visitor' },
      measures: [{ op: 'count' }],
    }),
  ],
  attributes: [
    attribute('people', 'city', 'text', indexed),
    attribute('people', 'loyalty', 'number'),
    attribute('people', 'referrer', 'person'),
    attribute('people', 'employer', 'stack', to('companies')),
    attribute('people', 'favourite', 'stack', to('products')),
    attribute('people', 'orders', 'stack', to('orders', 'many')),
    attribute('people', 'visits', 'stack', to('visits', 'many')),
    attribute('companies', 'name', 'text'),
    attribute('companies', 'industry', 'text'),
    attribute('companies', 'city', 'text'),
    attribute('products', 'name', 'text'),
    attribute('products', 'category', 'text'),
    attribute('products', 'price', 'number', indexed),
    attribute('orders', 'buyer', 'person'),
    attribute('orders', 'products', 'stack', to('products', 'many')),
    attribute('orders', 'total', 'number', indexed),
    attribute('orders', 'status', 'text'),
    attribute('orders', 'placed_at', 'datetime'),
    attribute('visits', 'visitor', 'person'),
    attribute('visits', 'at', 'datetime'),
    attribute('visits', 'page', 'text'),
    attribute('visits', 'viewed', 'stack', to('products')),
  ],
  consent_types: [
    {
      ...defaultsOf.consentType('surveys'),
      ...{ key: 'surveys', name: 'Surveys' },
      channels: [
        { channel: 'email', ...channelDefaults },
        { channel: 'sms', ...channelDefaults },
      ],
    },
  ],
}
