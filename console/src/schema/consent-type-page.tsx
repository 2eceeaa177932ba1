import type { ConsentType } from '@kith/client'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { useDefinitions, useDefinitionWrite } from '../entity/schema.ts'
import { Button } from '../ui/button.tsx'
import { EmptyState, Facts, Page, Problem, Section } from '../ui/page.tsx'
import { ConsentTexts } from './consent-texts.tsx'
import { ConsentTypeForm } from './consent-type-form.tsx'
import { Archived, Channels, withoutAnswer } from './consent-types-tab.tsx'
import { messages } from './messages.ts'
import styles from './schema.module.css'

const route = getRouteApi('/shell/schema/consent-types/$consentTypeId')

/** One purpose that people are asked for, and the texts that they answer to. The identifier `new` shows an empty form. */
export function ConsentTypePage() {
  const texts = useMessages(messages)
  const navigate = route.useNavigate()
  const { consentTypeId } = route.useParams()
  const { definitions } = useDefinitions()
  const back = () => navigate({ to: '/schema', search: { tab: 'consents' } })
  if (consentTypeId === 'new')
    return (
      <Page title={texts.newConsentType}>
        <ConsentTypeForm
          type={undefined}
          onClose={back}
          onSaved={({ id }) =>
            navigate({
              to: '/schema/consent-types/$consentTypeId',
              params: { consentTypeId: String(id) },
              replace: true,
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
          <Link to="/schema" search={{ tab: 'consents' }}>
            {texts.tabs.consents}
          </Link>
        </EmptyState>
      </Page>
    )
  return <ConsentTypeView key={type.id} type={type} />
}

function ConsentTypeView({ type }: { type: ConsentType }) {
  const texts = useMessages(messages)
  const [isEditing, setEditing] = useState(false)
  const close = () => setEditing(false)
  return (
    <Page
      title={type.name}
      subtitle={
        <>
          <Link to="/schema" search={{ tab: 'consents' }}>
            {texts.tabs.consents}
          </Link>{' '}
          · <code>{type.key}</code>
        </>
      }
    >
      {isEditing ? (
        <Section title={texts.editConsentType}>
          <ConsentTypeForm type={type} onClose={close} onSaved={close} />
        </Section>
      ) : (
        <ConsentTypeFacts type={type} onEdit={() => setEditing(true)} />
      )}
      <Section title={texts.texts}>
        <ConsentTexts type={type} />
      </Section>
    </Page>
  )
}

function ConsentTypeFacts({ type, onEdit }: { type: ConsentType; onEdit: () => void }) {
  const texts = useMessages(messages)
  const mayWrite = useScope('schema:write')
  const isActive = type.state === 'active'
  const archive = useDefinitionWrite(() =>
    client.schema.consentTypes.patch(type.id, { state: isActive ? 'archived' : 'active' }),
  )
  return (
    <Section title={texts.whatItIs}>
      <Facts
        facts={[
          [texts.description, type.description && <bdi key="description">{type.description}</bdi>],
          [texts.channels, <Channels key="channels" type={type} />],
          [texts.withoutAnswer, withoutAnswer(type, texts)],
          [texts.state, !isActive && <Archived key="state" />],
        ]}
      />
      {mayWrite && (
        <div className={styles.actions}>
          {isActive && <Button onPress={onEdit}>{texts.editConsentType}</Button>}
          <Button onPress={() => archive.mutate()} isPending={archive.isPending}>
            {isActive ? texts.archive : texts.activate}
          </Button>
        </div>
      )}
      {archive.error && <Problem error={archive.error} />}
    </Section>
  )
}
