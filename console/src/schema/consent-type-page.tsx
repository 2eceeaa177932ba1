import type { ConsentType } from '@kith/client'
import { getRouteApi, Link } from '@tanstack/react-router'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useNavigateAfter } from '../app/use-navigate-after.ts'
import { useDefinitions } from '../entity/schema.ts'
import { EmptyState, Page, Section } from '../ui/page.tsx'
import { ConsentTexts } from './consent-texts.tsx'
import { ConsentTypeForm } from './consent-type-form.tsx'
import { Channels, unansweredOf } from './consent-types-tab.tsx'
import { DefinitionPage } from './definition-page.tsx'
import { messages } from './messages.ts'

const route = getRouteApi('/shell/schema/consent-types/$consentTypeId')

/** One purpose that people are asked for, and the texts that they answer to. The identifier `new` shows an empty form. */
export function ConsentTypePage() {
  const texts = useMessages(messages)
  const navigate = useNavigateAfter()
  const { consentTypeId } = route.useParams()
  const { definitions } = useDefinitions()
  if (consentTypeId === 'new')
    return (
      <Page title={texts.newConsentType}>
        <ConsentTypeForm
          type={undefined}
          onClose={() => navigate({ to: '/schema', search: { tab: 'consents' }, ignoreBlocker: true })}
          onSaved={({ id }) =>
            navigate({
              to: '/schema/consent-types/$consentTypeId',
              params: { consentTypeId: String(id) },
              replace: true,
              ignoreBlocker: true,
            })
          }
        />
      </Page>
    )
  const type = definitions.consent_types.find(({ id }) => String(id) === consentTypeId)
  if (!type)
    return (
      <Page title={texts.consentType}>
        <EmptyState title={texts.noSuchConsentType}>
          <ListLink />
        </EmptyState>
      </Page>
    )
  return <ConsentTypeView key={type.id} type={type} />
}

function ListLink() {
  const texts = useMessages(messages)
  return (
    <Link to="/schema" search={{ tab: 'consents' }}>
      {texts.tabs.consents}
    </Link>
  )
}

function ConsentTypeView({ type }: { type: ConsentType }) {
  const texts = useMessages(messages)
  return (
    <DefinitionPage
      definition={type}
      list={<ListLink />}
      facts={[
        [texts.description, type.description && <bdi key="description">{type.description}</bdi>],
        [texts.channels, <Channels key="channels" type={type} />],
        [texts.withoutAnswer, texts[unansweredOf(type)]],
      ]}
      edit={texts.editConsentType}
      form={close => <ConsentTypeForm type={type} onClose={close} onSaved={close} />}
      setState={state => client.schema.consentTypes.patch(type.id, { state })}
    >
      <Section title={texts.texts}>
        <ConsentTexts type={type} />
      </Section>
    </DefinitionPage>
  )
}
