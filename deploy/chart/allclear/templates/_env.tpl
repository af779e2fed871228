{{/* The variables that switches set. They come before config.toml. */}}
{{- define "allclear.env" -}}
{{- if .Values.webhooks.enabled }}
- name: ALLCLEAR__WEBHOOKS__FILE
  value: /etc/allclear/webhooks.json
{{- end }}
{{- if .Values.group.enabled }}
{{- with .Values.group.member }}
- name: ALLCLEAR__GROUP__MEMBER
  value: {{ . | quote }}
{{- end }}
{{- with .Values.group.members }}
- name: ALLCLEAR__GROUP__MEMBERS
  value: {{ join "," . | quote }}
{{- end }}
{{- if .Values.group.signed }}
- name: ALLCLEAR__GROUP__KEY_FILE
  value: /etc/allclear/group-key
{{- else }}
# Said, so that it is no oversight.
- name: ALLCLEAR__GROUP__UNSIGNED
  value: "true"
{{- end }}
{{- if .Values.group.redisCa }}
- name: ALLCLEAR__REDIS__CA_FILE
  value: /etc/allclear/redis-ca.pem
{{- end }}
{{- end }}
{{- if and .Values.pipelines.enabled .Values.pipelines.weave }}
- name: ALLCLEAR__PIPELINE__GROUPS
  value: allclear.dev,pipelines.weave.works
{{- end }}
{{- if .Values.repos.enabled }}
# Jobs fetch the commit with the very image that made them.
- name: ALLCLEAR__REPO__STEP_IMAGE
  value: {{ include "allclear.image" . | quote }}
{{- end }}
{{- if .Values.hooks.enabled }}
- name: ALLCLEAR__HOOKS__LISTEN
  value: 0.0.0.0:8082
{{- if .Values.hooks.keys }}
- name: ALLCLEAR__HOOKS__KEY_FILE
  value: /etc/allclear/hook-keys
{{- end }}
{{- end }}
{{- if .Values.fresh.enabled }}
- name: ALLCLEAR__HTTP__FRESH_TOKEN_FILE
  value: /etc/allclear/fresh-token
{{- end }}
{{- with .Values.proxy.aws }}
- name: HTTPS_PROXY
  value: {{ . | quote }}
{{- end }}
{{- with .Values.proxy.noProxy }}
- name: NO_PROXY
  value: {{ . | quote }}
{{- end }}
{{- with .Values.proxy.webhooks }}
- name: ALLCLEAR__WEBHOOKS__PROXY
  value: {{ . | quote }}
{{- end }}
{{- with .Values.traces.endpoint }}
- name: ALLCLEAR__TRACES__ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with .Values.traces.headersSecret }}
# Headers are credentials.
- name: ALLCLEAR__TRACES__HEADERS
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: headers
{{- end }}
{{- if .Values.caBundle.configMap }}
# Where one of the two is set, nothing else is looked at: the first is the bundle, the second what the image has.
- name: SSL_CERT_FILE
  value: /etc/allclear-authorities/ca.crt
- name: SSL_CERT_DIR
  value: /etc/ssl/certs
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}
