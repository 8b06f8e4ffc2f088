/* silt id. */
#include "cli.h"

START_TEST(id__explains_a_branded_id)
{
    CK_SILT_OUT(0,
                "EVT000xY9Wvvcd  (branded)\n"
                "  instant    2024-01-01T13:53:20.000Z\n"
                "  wire id    1704117200000-1620567  EVT000xY9Wvvcd\n"
                "  snowflake  209715201620567  node 395  sequence 2647  hash32 2510208562\n",
                "id", "EVT000xY9Wvvcd");
}
END_TEST

START_TEST(id__gives_a_wire_id_its_brand_where_one_is_named)
{
    CK_SILT(0, "EVT0LA1WsaHbSn", "", "id", "--ids", "branded EVT", "1772366400000-45061");
    CK_SILT(0, "286467607756845061", "", "id", "1772366400000-45061");
    CK_SILT(0, "(no branded form)", "", "id", "5-1");
}
END_TEST

START_TEST(id__gives_an_instant_its_first_and_last_ids)
{
    CK_SILT(0, "1772366400000-0  EVT0LA1WsaHPk0", "", "id", "--ids", "branded EVT",
            "2026-03-01T12:00:00Z");
    CK_SILT(0, "1772366400000-4194303  EVT0LA1WsaZ0s3", "", "id", "--ids", "branded EVT",
            "1772366400000");
    CK_SILT(0, "1772366400000-18446744073709551615", "", "id", "2026-03-01T12:00:00Z");
}
END_TEST

START_TEST(id__takes_a_large_number_for_a_snowflake)
{
    CK_SILT(0, "1769526697641-0", "", "id", "274557032793636864");
    CK_SILT(0, "hash32 234878118", "", "id", "274557032793636864");
}
END_TEST

START_TEST(id__writes_json)
{
    CK_SILT_OUT(
        0,
        "{\"text\":\"EVT000xY9Wvvcd\",\"kind\":\"branded\",\"instant\":\"2024-01-01T13:53:20."
        "000Z\",\"id\":\"1704117200000-1620567\",\"branded\":\"EVT000xY9Wvvcd\",\"snowflake\":"
        "\"209715201620567\",\"node\":395,\"seq\":2647,\"hash32\":2510208562}\n",
        "id", "--json", "EVT000xY9Wvvcd");
}
END_TEST

START_TEST(id__refuses_each_kind_with_its_own_sentence)
{
    static const char *const rows[][2] = {
        {"EVT0KHTOWnGLu", "has 13 bytes, not 14"},
        {"usr0KHTOWnGLuC", "starts with three letters A-Z"},
        {"USR0KHTOWnGL!C", "are digits of 0-9A-Za-z"},
        {"EVTAzL8n0Y58m8", "is at most AzL8n0Y58m7"},
        {"1-x", "not a wire id: '1-x'"},
        {"2026-02-30", "not an instant: '2026-02-30'"},
        {"1969-12-31", "no id can lie before 1970"},
        {"18446744073709551616", "is not below 2^64"},
        {"", "not an id or instant: ''"},
        {"\033[31m", "\\x1b[31m"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CK_SILT(2, "", rows[i][1], "id", rows[i][0]);
    CK_SILT(2, "", "not a namespace: 'evt'", "id", "--ids", "branded evt", "1-1");
    CK_SILT(2, "", "--ids is 'branded NS' or 'wire', not 'plain'", "id", "--ids", "plain", "1-1");
}
END_TEST

START_TEST(id__goes_on_behind_a_refused_one)
{
    CK_SILT(2, "5-1  (wire)", "not an id or instant: 'nonsense'", "id", "nonsense", "5-1");
}
END_TEST

TEST_MAIN(id__explains_a_branded_id, id__gives_a_wire_id_its_brand_where_one_is_named,
          id__gives_an_instant_its_first_and_last_ids, id__takes_a_large_number_for_a_snowflake,
          id__writes_json, id__refuses_each_kind_with_its_own_sentence,
          id__goes_on_behind_a_refused_one)
