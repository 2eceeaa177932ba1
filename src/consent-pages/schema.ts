import type { Static } from 'typebox'
import { channels } from '../values/channels.ts'
import { closedObject, number, Type, text } from '../values/json-schema.ts'

const daySeconds = 86_400
const lifetime = { minimum: 60, maximum: 5 * 366 * daySeconds }

/** Body of POST /v1/people/{external_id}/consent-links. */
export const consentLinksBody = closedObject(
  {
    consent_type_id: Type.Optional(
      number('The purpose that `unsubscribe_url` refuses and `confirm_url` confirms. Without it: all purposes.'),
    ),
    channel: Type.Optional(Type.Enum(channels, { description: 'The channel of these. Without it: all channels.' })),
    expires_in: Type.Optional(
      Type.Integer({
        ...lifetime,
        description:
          'Seconds until the links expire. The default is a year, and 7 days for `confirm_url`. The law may ask for a minimum: ' +
          'CAN-SPAM wants the link in a mail to work for 30 days.',
      }),
    ),
  },
  { title: 'ConsentLinksBody', examples: [{ consent_type_id: 1, channel: 'email' }] },
)
export type ConsentLinksBody = Static<typeof consentLinksBody>

/** The links of a person. */
export const consentLinks = Type.Object(
  {
    preferences_url: text('The page with all purposes, where the person grants and refuses.'),
    unsubscribe_url: text('The page that refuses. It also takes the one-click request of RFC 8058.'),
    confirm_url: Type.Optional(
      text(
        'The page that confirms a grant. Present if the request names a purpose and a channel with `double_opt_in`, or on which a grant waits for its confirmation.',
      ),
    ),
  },
  {
    title: 'ConsentLinks',
    description: 'The links of a person.',
    examples: [
      {
        preferences_url:
          'https://contact.books.example/p/EQABAAAAAQGTbz4KXHw-nQpbbzwdLk8AAAAAAGsfRk1xJkNXbUq0Zs2b6cS5rJQv',
        unsubscribe_url:
          'https://contact.books.example/u/EgABAAAAAQGTbz4KXHw-nQpbbzwdLk8AAAABAWsfRk1nT0xGVlRBa2xQd1JkR3pC',
      },
    ],
  },
)
export type ConsentLinks = Static<typeof consentLinks>
